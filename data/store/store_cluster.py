"""The cluster to which a store's rows belong: bound once, by the first cluster that answers.

Tables whose rows name OSDs by their numbers have a column `cluster` in their keys. A value without a cluster is of the
store's own. Until the store is bound its own rows have UNBOUND there, and the transaction that binds the store writes
the fsid into them. In PostgreSQL writers of an unbound store lock the note that names the cluster, so that no row is
written beside that transaction.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, Table, and_, exists, select

from predrain.data.ids import ClusterId
from predrain.data.store import store_schema
from predrain.data.store.database import Database

ROOM, NAME = "cluster", "fsid"
"""The note that names the store's own cluster; it is empty while the store is not bound."""
UNBOUND = ""
"""The value of `cluster` in a row whose cluster is not known yet."""

_NOTES = store_schema.notes
_THE_NOTE = (_NOTES.c.room == ROOM, _NOTES.c.name == NAME)
_OF_NOTE = select(_NOTES.c.document).where(*_THE_NOTE)
_KEYS_BESIDE_CLUSTER = {
    store_schema.host_latency: ("host", "window_start", "merged"),
    store_schema.latency_osds: ("osd", "host"),
    store_schema.drains: ("id",),
    store_schema.life_changes: ("number",),
    store_schema.cluster_events: ("subject", "place"),
}
"""The tables with a column `cluster`, and the columns that, with it, identify a row."""


class StoreCluster:
    """The own cluster of a store. Thread-safe: it is bound once and then never changes.

    `cluster`: the store's rows are those of this cluster, even if the database notes another one. None: of the noted
    one.
    """

    def __init__(self, database: Database, cluster: ClusterId | None = None) -> None:
        self._database, self._bound = database, cluster

    def get_cluster(self) -> ClusterId | None:
        """Return the own cluster, or None while the store is not bound."""
        return self._bound or ClusterId(self._database.read(self.read_own)) or None

    def read_own(self, connection: Connection) -> str:
        """Return the value of `cluster` in the own rows."""
        if self._bound is None:
            noted = _decode_note(connection.execute(_OF_NOTE).scalar_one_or_none())
            self._bound = ClusterId(noted) if noted else None
            return noted
        return self._bound

    def lock_own(self, connection: Connection) -> str:
        """Return the value of `cluster` for rows that this transaction writes: it stays until the transaction ends."""
        return self.read_own(connection) or self._lock_note(connection, shared=True)

    def bind(self, cluster: ClusterId) -> ClusterId:
        """Bind the store to `cluster` unless it is bound; return the cluster to which it is bound."""

        def write(connection: Connection) -> ClusterId:
            if own := self._lock_note(connection, shared=False):
                return ClusterId(own)
            connection.execute(_NOTES.update().where(*_THE_NOTE), {"document": cluster.encode()})
            for table, keys in _KEYS_BESIDE_CLUSTER.items():
                _fill_in_cluster(connection, table, keys, cluster)
            return cluster

        if self._bound is None:
            self._bound = self._database.write(write)
        return self._bound

    def _lock_note(self, connection: Connection, *, shared: bool) -> str:
        adding = self._database.insert(_NOTES).on_conflict_do_nothing()
        connection.execute(adding, {"room": ROOM, "name": NAME, "document": b""})
        return _decode_note(connection.execute(_OF_NOTE.with_for_update(read=shared)).scalar_one())


def _decode_note(document: bytes | None) -> str:
    return bytes(document).decode() if document else UNBOUND


def _fill_in_cluster(connection: Connection, table: Table, keys: tuple[str, ...], cluster: ClusterId) -> None:
    """Give the rows without a cluster to `cluster`, except those that it has already from a sender with an fsid."""
    other = table.alias()
    had = exists().where(other.c.cluster == cluster, *(other.c[key] == table.c[key] for key in keys))
    unbound: ColumnElement[bool] = table.c.cluster == UNBOUND
    connection.execute(table.delete().where(and_(unbound, had)))
    connection.execute(table.update().where(unbound), {"cluster": cluster})
