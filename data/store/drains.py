"""Drains as they are kept: each one's newest revision, read once and remembered."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from predrain.data.cluster_event import tell_drain
from predrain.data.drain import Drain
from predrain.data.store import documents, schema, upkeep
from predrain.data.store.cluster_events import append_events
from predrain.data.store.database import Database
from predrain.data.store.faults import StoreUnreadable
from predrain.data.store.port import RevisionConflict
from predrain.data.store.schema import microseconds

_DRAINS = schema.drains
_MOST_NAMED = 500
"""Ids in one statement; where more were saved, all are read."""


class Drains:
    """The drains of one database. Drains are never dropped and a revision never changes, so that of all there ever
    were only those are read again that somebody saved since.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, Drain] = {}

    def save(self, drain: Drain) -> None:
        """Keep the drain's newest revision. Raises RevisionConflict."""
        row = {
            "id": drain.id,
            "created_at": microseconds(drain.created_at),
            "revision": drain.revision,
            "document": documents.DRAIN.write(drain),
        }
        insert = self._database.insert(_DRAINS)
        newer = insert.on_conflict_do_update(
            index_elements=["id"],
            set_={name: insert.excluded[name] for name in (*row, "written") if name != "id"},
            where=insert.excluded.revision > _DRAINS.c.revision,
        )

        def keep(connection: Connection) -> bytes | None:
            numbered = {**row, "written": self._database.number(connection)}
            saved = connection.execute(newer, numbered, execution_options=upkeep.COUNTED).rowcount
            if not saved:
                return _document(connection, drain.id)
            append_events(self._database, connection, [tell_drain(drain)])
            return None

        raw = self._database.write(keep)
        if raw is not None and (stored := self._read(raw)) != drain:
            raise RevisionConflict(
                f"drain {drain.id} was saved with revision {stored.revision} by somebody else and"
                f" revision {drain.revision} comes too late: read it again and decide anew"
            )

    def one(self, id_: str) -> Drain | None:
        """One drain by id."""
        raw = self._database.read(lambda connection: _document(connection, id_))
        return None if raw is None else self._read(raw)

    def all(self) -> tuple[Drain, ...]:
        """All drains that can be read, newest first."""
        newest_first = select(_DRAINS.c.id, _DRAINS.c.revision).order_by(
            _DRAINS.c.created_at.desc(), _DRAINS.c.id.desc()
        )
        known = self._known

        def look(connection: Connection) -> tuple[Sequence[str], Sequence[bytes]]:
            places = {row.id: row.revision for row in connection.execute(newest_first)}
            news = {
                id_ for id_, revision in places.items() if id_ not in known or known[id_].revision != revision
            }
            if not news:
                return tuple(places), ()
            wanted = select(_DRAINS.c.id, _DRAINS.c.document)
            if len(news) <= _MOST_NAMED:
                wanted = wanted.where(_DRAINS.c.id.in_(news))
            return tuple(places), [document for id_, document in connection.execute(wanted) if id_ in news]

        places, raws = self._database.read(look)
        read = self._database.set_aside.read_all(_DRAINS.name, raws, documents.DRAIN.read, whole=True)
        fresh = {drain.id: drain for drain in read}  # or newer than the first look found
        found = {id_: drain for id_ in places if (drain := fresh.get(id_) or known.get(id_)) is not None}
        self._known = found
        return tuple(found.values())

    def _read(self, raw: bytes) -> Drain:
        found = self._database.set_aside.read_one(_DRAINS.name, raw, documents.DRAIN.read)
        if found is None:
            raise StoreUnreadable(str(self._database.set_aside.describe()))
        return found


def _document(connection: Connection, id_: str) -> bytes | None:
    raw: bytes | None = connection.execute(
        select(_DRAINS.c.document).where(_DRAINS.c.id == id_)
    ).scalar_one_or_none()
    return raw
