"""Notes: small values that parts of the service store, each part under a namespace (`room`) of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection, bindparam, exists, or_, select

from predrain.data.store import store_schema
from predrain.data.store.database import Database

_NOTES = store_schema.notes


def read_notes(database: Database, room: str) -> Mapping[str, bytes]:
    """Implement `data.store.store_port.Store.read_notes`."""
    wanted = select(_NOTES.c.name, _NOTES.c.document).where(_NOTES.c.room == room).order_by(_NOTES.c.name)
    rows = database.read(lambda connection: connection.execute(wanted).all())
    return {name: bytes(document) for name, document in rows}


def write_notes(
    database: Database,
    room: str,
    changes: Mapping[str, bytes | None],
    beside: Callable[[Connection], None] = lambda _connection: None,
) -> None:
    """Implement `data.store.store_port.Store.write_notes`, with `beside` in the same transaction.

    Changes are written in the order of names, so that two writers never wait for each other.
    """
    ordered = sorted(changes.items())
    kept = [{"room": room, "name": name, "document": raw} for name, raw in ordered if raw is not None]
    gone = [{"gone": name} for name, raw in ordered if raw is None]
    insert = database.insert(_NOTES)
    keeping = insert.on_conflict_do_update(
        index_elements=["room", "name"], set_={"document": insert.excluded.document}
    )
    forgetting = _NOTES.delete().where(_NOTES.c.room == room, _NOTES.c.name == bindparam("gone"))

    def write(connection: Connection) -> None:
        if kept:
            connection.execute(keeping, kept)
        if gone:
            connection.execute(forgetting, gone)
        beside(connection)

    if kept or gone:
        database.write(write)


def note_once(database: Database, room: str, name: str, document: bytes) -> bytes:
    """Implement `data.store.store_port.Store.note_once`; if several processes begin at once, the first one's
    note stays.
    """
    adding = database.insert(_NOTES).on_conflict_do_nothing()
    wanted = select(_NOTES.c.document).where(_NOTES.c.room == room, _NOTES.c.name == name)

    def write(connection: Connection) -> bytes:
        connection.execute(adding, {"room": room, "name": name, "document": document})
        return bytes(connection.execute(wanted).scalar_one())

    return database.write(write)


def is_empty(database: Database) -> bool:
    """Implement `data.store.store_port.Store.is_empty`."""
    tables = (*store_schema.FOLLOWED, store_schema.host_latency)
    any_row = select(or_(*(exists().select_from(table) for table in tables)))
    return not database.read(lambda connection: connection.execute(any_row).scalar_one())
