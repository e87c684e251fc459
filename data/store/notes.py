"""Notes: small values that parts of the service store, each part under a namespace (`room`) of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection, bindparam, exists, or_, select

from predrain.data.store import store_schema
from predrain.data.store.database import Database
from predrain.data.store.store_port import NoteCondition

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

    def write(connection: Connection) -> None:
        _apply_changes(database, connection, room, changes)
        beside(connection)

    if changes:
        database.write(write)


def write_notes_if(
    database: Database, condition: NoteCondition, room: str, changes: Mapping[str, bytes | None]
) -> bool:
    """Implement `data.store.store_port.Store.write_notes_if`.

    The rows of the condition are locked in the order of their names. SQLite has one writer at a time, and needs no
    lock of a row.
    """
    wanted = (
        select(_NOTES.c.name, _NOTES.c.document)
        .where(_NOTES.c.room == condition.room, _NOTES.c.name.in_(sorted(condition.documents)))
        .order_by(_NOTES.c.name)
        .with_for_update()
    )

    def write(connection: Connection) -> bool:
        found = {name: bytes(document) for name, document in connection.execute(wanted).all()}
        if found != condition.documents:
            return False
        _apply_changes(database, connection, room, changes)
        return True

    return database.write(write)


def _apply_changes(
    database: Database, connection: Connection, room: str, changes: Mapping[str, bytes | None]
) -> None:
    ordered = sorted(changes.items())
    kept = [{"room": room, "name": name, "document": raw} for name, raw in ordered if raw is not None]
    gone = [{"gone": name} for name, raw in ordered if raw is None]
    if kept:
        insert = database.insert(_NOTES)
        keeping = insert.on_conflict_do_update(
            index_elements=["room", "name"], set_={"document": insert.excluded.document}
        )
        connection.execute(keeping, kept)
    if gone:
        forgetting = _NOTES.delete().where(_NOTES.c.room == room, _NOTES.c.name == bindparam("gone"))
        connection.execute(forgetting, gone)


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
