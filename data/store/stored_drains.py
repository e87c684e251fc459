"""Drains as they are stored: each one's newest revision, read once and remembered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, select

from predrain.data.cluster_event import tell_drain
from predrain.data.drain import Drain
from predrain.data.store import documents, store_schema, table_upkeep
from predrain.data.store.database import Database
from predrain.data.store.store_cluster import StoreCluster
from predrain.data.store.store_faults import StoreUnreadable
from predrain.data.store.store_port import RevisionConflict
from predrain.data.store.store_schema import to_microseconds
from predrain.data.store.stored_events import append_events

_DRAINS = store_schema.drains
_MOST_NAMED = 500
"""Most ids in one statement; if more drains were saved, all are read."""
# A controller reads its drains several times in each tick, and most of the time went into building the statements.
_NEWEST_FIRST: Final = (
    select(_DRAINS.c.id, _DRAINS.c.revision)
    .where(_DRAINS.c.cluster == bindparam("own"))
    .order_by(_DRAINS.c.created_at.desc(), _DRAINS.c.id.desc())
)
_ALL_DOCUMENTS: Final = select(_DRAINS.c.id, _DRAINS.c.document).where(_DRAINS.c.cluster == bindparam("own"))
_NAMED_DOCUMENTS: Final = _ALL_DOCUMENTS.where(_DRAINS.c.id.in_(bindparam("ids", expanding=True)))


class DrainRows:
    """The drains of one cluster.

    Drains are never dropped and a revision never changes, so only the drains that were saved since are read again.
    """

    def __init__(self, database: Database, own: StoreCluster) -> None:
        self._database, self._own = database, own
        self._known_drains: dict[str, Drain] = {}
        insert = database.insert(_DRAINS)
        self._save_newer = insert.on_conflict_do_update(
            index_elements=["id", "cluster"],
            set_={name: insert.excluded[name] for name in ("created_at", "revision", "document", "written")},
            where=insert.excluded.revision > _DRAINS.c.revision,
        )

    def save_drain(self, drain: Drain) -> None:
        """Save the drain's newest revision. Raises RevisionConflict."""
        row = {
            "id": drain.id,
            "created_at": to_microseconds(drain.created_at),
            "revision": drain.revision,
            "document": documents.DRAIN.write(drain),
        }

        def keep(connection: Connection) -> bytes | None:
            cluster = self._own.lock_own(connection)
            numbered = {
                **row,
                "written": self._database.read_transaction_number(connection),
                "cluster": cluster,
            }
            saved = connection.execute(
                self._save_newer, numbered, execution_options=table_upkeep.COUNTED
            ).rowcount
            if not saved:
                return _read_drain_document(connection, cluster, drain.id)
            append_events(self._database, connection, cluster, [tell_drain(drain)])
            return None

        raw = self._database.write(keep)
        if raw is not None and (stored := self._read_document(raw)) != drain:
            raise RevisionConflict(
                f"drain {drain.id} was saved with revision {stored.revision} by another process and"
                f" revision {drain.revision} comes too late: read it and decide again"
            )

    def drain(self, id: str) -> Drain | None:  # noqa: A002
        """Return one drain by id, or None. Raises StoreUnreadable."""
        raw = self._database.read(
            lambda connection: _read_drain_document(connection, self._own.read_own(connection), id)
        )
        return None if raw is None else self._read_document(raw)

    def drains(self) -> tuple[Drain, ...]:
        """Return all drains that can be read, newest first."""
        known = self._known_drains

        def look(connection: Connection) -> tuple[Sequence[str], Sequence[bytes]]:
            mine = {"own": self._own.read_own(connection)}
            places = {row.id: row.revision for row in connection.execute(_NEWEST_FIRST, mine)}
            news = {
                id_ for id_, revision in places.items() if id_ not in known or known[id_].revision != revision
            }
            if not news:
                return tuple(places), ()
            rows = (
                connection.execute(_NAMED_DOCUMENTS, {**mine, "ids": sorted(news)})
                if len(news) <= _MOST_NAMED
                else connection.execute(_ALL_DOCUMENTS, mine)
            )
            return tuple(places), [document for id_, document in rows if id_ in news]

        places, raws = self._database.read(look)
        read = self._database.set_aside.read_all(_DRAINS.name, raws, documents.DRAIN.read, whole=True)
        fresh = {drain.id: drain for drain in read}  # or newer than the revision in `places`
        found = {id_: drain for id_ in places if (drain := fresh.get(id_) or known.get(id_)) is not None}
        self._known_drains = found
        return tuple(found.values())

    def count_damaged_drains(self) -> int:
        """Return how many drains cannot be read now."""
        self.drains()
        return self._database.set_aside.count_unreadable_rows(_DRAINS.name)

    def _read_document(self, raw: bytes) -> Drain:
        found = self._database.set_aside.read_one(_DRAINS.name, raw, documents.DRAIN.read)
        if found is None:
            raise StoreUnreadable(str(self._database.set_aside.describe()))
        return found


def _read_drain_document(connection: Connection, cluster: str, id_: str) -> bytes | None:
    raw: bytes | None = connection.execute(
        select(_DRAINS.c.document).where(_DRAINS.c.id == id_, _DRAINS.c.cluster == cluster)
    ).scalar_one_or_none()
    return raw
