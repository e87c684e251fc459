"""Small things that parts of the service remember, each part in a room of its own."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, select

from data.store import schema
from data.store.database import Database

_NOTES = schema.notes


def notes(database: Database, room: str) -> Mapping[str, bytes]:
    """As `data.store.port.Store.notes`."""
    wanted = select(_NOTES.c.name, _NOTES.c.document).where(_NOTES.c.room == room).order_by(_NOTES.c.name)
    rows = database.read(lambda connection: connection.execute(wanted).all())
    return {name: bytes(document) for name, document in rows}


def note(database: Database, room: str, changes: Mapping[str, bytes | None]) -> None:
    """As `data.store.port.Store.note`; in the order of names, so that two writers never wait for each other."""
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

    if kept or gone:
        database.write(write)
