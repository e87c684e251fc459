"""Version 10: rows that name OSDs by their numbers carry the fsid of the OSDs' cluster, in their keys.

The rows of before belong to the cluster to which the store is bound. If it is not bound yet, they get the fsid when it
is (data.store.store_cluster). A downgrade drops the rows of other clusters, which version 9 would mix with the store's
own, and the fsid of the OSDs in readings.
"""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import op

from predrain.data.store.documents import compress_document, decompress_document
from predrain.data.store.migrations.rewriting import rewrite_table_rows

revision = "0010"
down_revision = "0009"

_KEYS = {
    "host_latency": ("host", "window_start", "merged"),
    "latency_osds": ("osd", "host"),
    "drains": ("id",),
}
_CHANGES = "life_changes"
_EVENTS, _UNIQUE = "cluster_events", "cluster_events_by_subject"
_READINGS = (("readings", ("device", "taken_at")), ("latest_readings", ("device",)))
_notes = sa.table("notes", *map(sa.column, ("room", "name", "document")))
_of_note = (_notes.c.room == "cluster", _notes.c.name == "fsid")


def upgrade() -> None:
    """Add the column with the store's own cluster as its value, and extend the keys by it."""
    own = _read_own_cluster()
    for name in (*_KEYS, _CHANGES, _EVENTS):
        # A default needs no rewriting of the rows, of which there may be millions.
        op.add_column(name, sa.Column("cluster", sa.String, nullable=False, server_default=own))
    with op.batch_alter_table(_CHANGES) as table:
        table.alter_column("cluster", server_default="")
    for name in _KEYS:
        _set_primary_key(name, with_cluster=True)
    with op.batch_alter_table(_EVENTS) as table:
        table.alter_column("cluster", server_default="")
        table.drop_constraint(_UNIQUE, type_="unique")
        table.create_unique_constraint(_UNIQUE, ["subject", "place", "cluster"])


def downgrade() -> None:
    """Drop the rows of other clusters, the column, and what version 9 would refuse."""
    own = _read_own_cluster()
    for name in (*_KEYS, _CHANGES, _EVENTS):
        table = sa.table(name, sa.column("cluster"))
        op.execute(table.delete().where(table.c.cluster != own))
    with op.batch_alter_table(_EVENTS) as events:
        events.drop_constraint(_UNIQUE, type_="unique")
        events.create_unique_constraint(_UNIQUE, ["subject", "place"])
    for name in _KEYS:
        _set_primary_key(name, with_cluster=False)
    for name in (*_KEYS, _CHANGES, _EVENTS):
        op.drop_column(name, "cluster")
    op.execute(_notes.delete().where(*_of_note, _notes.c.document == b""))
    for name, keys in _READINGS:
        readings = sa.table(name, *map(sa.column, (*keys, "document")))
        rewrite_table_rows(readings, keys, "document", _without_clusters)


def _read_own_cluster() -> str:
    """Return the fsid of the cluster to which the store is bound, or "" if it is not bound."""
    noted = op.get_bind().execute(sa.select(_notes.c.document).where(*_of_note)).scalar_one_or_none()
    return bytes(noted).decode() if noted else ""


def _set_primary_key(name: str, *, with_cluster: bool) -> None:
    """Put the column `cluster`, which the table has, into its primary key, or take it out of there."""
    keys = (*_KEYS[name], "cluster") if with_cluster else _KEYS[name]
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint(f"{name}_pkey", name, type_="primary")
        op.create_primary_key(f"{name}_pkey", name, [*keys])
        op.alter_column(name, "cluster", server_default="")
        return
    key = sa.PrimaryKeyConstraint(*keys, name=f"{name}_pkey" if with_cluster else None)
    cluster = sa.Column("cluster", sa.String, nullable=False, server_default="")
    copy = sa.Table(name, sa.MetaData(), *_list_columns(name), cluster, key)
    with op.batch_alter_table(name, copy_from=copy, recreate="always"):
        pass  # SQLite changes a key by copying the table


def _list_columns(name: str) -> tuple[sa.Column[Any] | sa.Index, ...]:
    """Return the columns and the indexes of a table of version 9."""
    if name == "drains":
        return (
            sa.Column("id", sa.String, nullable=False),
            sa.Column("created_at", sa.BigInteger, nullable=False),
            sa.Column("revision", sa.Integer, nullable=False),
            sa.Column("document", sa.LargeBinary, nullable=False),
            sa.Column("written", sa.BigInteger, nullable=False, server_default="0"),
            sa.Index("drains_by_creation", "created_at", "id"),
            sa.Index("drains_by_writing", "written"),
        )
    host = sa.Column("host", sa.String, nullable=False)
    if name == "latency_osds":
        return sa.Column("osd", sa.Integer, nullable=False), host, sa.Index("latency_osds_by_host", "host")
    return (
        host,
        sa.Column("window_start", sa.BigInteger, nullable=False),
        sa.Column("merged", sa.Integer, nullable=False),
        sa.Column("packed", sa.LargeBinary, nullable=False),
    )


def _without_clusters(row: Any) -> dict[str, Any] | None:
    plain = decompress_document(row.document)
    if b'"cluster"' not in plain:
        return None
    reading = msgspec.json.decode(plain)
    for seat in reading.get("seats", ()):
        seat.pop("cluster", None)
    return {"document": compress_document(msgspec.json.encode(reading))}
