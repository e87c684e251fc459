"""Version 5: latencies in one row for all OSDs of a host, by column; documents packed by zstd when they are written.

The order of fields here is that of version 5 and stays, also if data.store.latency_columns gets more fields later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import op

from predrain.data.store.migrations.rewriting import older_documents, read_table_pages

revision = "0005"
down_revision = "0004"

_AT_ONCE = 500
_MERGED_SECONDS = 600
_VALUES = 15
"""Values of an OSD behind its number: seconds, operations, six latencies, await, IOPS, queue and four states."""
_KEYS = ("host", "window_start", "merged")
_DOCUMENTS = ("readings", "latest_readings", "outlooks", "latest_outlooks", "checkpoints")

_latency = sa.table("latency", *map(sa.column, ("osd", "window_start", "seconds", "packed")))
_host_latency = sa.table("host_latency", *map(sa.column, (*_KEYS, "packed")))
_latency_osds = sa.table("latency_osds", *map(sa.column, ("osd", "host")))


def upgrade() -> None:
    """Bring a host's OSDs together in one row. Documents are readable as they are."""
    op.create_table(
        "host_latency",
        sa.Column("host", sa.String, primary_key=True),
        sa.Column("window_start", sa.BigInteger, primary_key=True),
        sa.Column("merged", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("packed", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "latency_osds",
        sa.Column("osd", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("host", sa.String, primary_key=True),
    )
    op.create_index("latency_osds_by_host", "latency_osds", ["host"])
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        # The server's own packing takes longer than everything else that is done with a row, and saves a
        # third.
        op.execute("ALTER TABLE host_latency ALTER COLUMN packed SET STORAGE EXTERNAL")
        for name in _DOCUMENTS:  # already packed: as they are, in their row, if it fits on a page
            op.execute(f"ALTER TABLE {name} SET (toast_tuple_target = 8160)")
    op.create_index("latency_by_time", "latency", ["window_start", "osd"])  # dropped with its table
    told: set[tuple[int, str]] = set()
    old = chain.from_iterable(read_table_pages(connection, _latency, ("window_start", "osd"), "packed"))
    _insert_in_batches(_host_latency.insert(), _by_host(old, told))
    _insert_in_batches(_latency_osds.insert(), ({"osd": osd, "host": host} for osd, host in sorted(told)))
    op.drop_table("latency")


def downgrade() -> None:
    """Take the rows apart again, and write documents as version 4 reads them."""
    older_documents()
    if op.get_bind().dialect.name == "postgresql":
        for name in _DOCUMENTS:
            op.execute(f"ALTER TABLE {name} RESET (toast_tuple_target)")
    op.create_table(
        "latency",
        sa.Column("osd", sa.Integer, primary_key=True),
        sa.Column("window_start", sa.BigInteger, primary_key=True),
        sa.Column("seconds", sa.Integer, nullable=False),
        sa.Column("packed", sa.LargeBinary, nullable=False),
    )
    rows = chain.from_iterable(read_table_pages(op.get_bind(), _host_latency, _KEYS, "packed"))
    # A late window may stand beside the ten minutes to which it belongs.
    put = sa.text(
        "INSERT INTO latency (osd, window_start, seconds, packed) VALUES (:osd, :window_start, :seconds, :packed)"
        " ON CONFLICT (osd, window_start) DO UPDATE SET seconds = excluded.seconds, packed = excluded.packed"
        " WHERE excluded.seconds > latency.seconds"
    )
    _insert_in_batches(put, _by_osd(rows))
    op.drop_table("host_latency")
    op.drop_table("latency_osds")


def _by_host(old: Iterable[Any], told: set[tuple[int, str]]) -> Iterator[dict[str, Any]]:
    """Yield rows of version 5 from those of version 4, which come in the order of time.

    Add to `told` each pair of an OSD and a host that reports it.
    """
    for start, rows in groupby(old, attrgetter("window_start")):
        together: defaultdict[tuple[str, int], list[list[Any]]] = defaultdict(list)
        for row in rows:
            host, *values = msgspec.msgpack.decode(row.packed)
            values += [None] * (_VALUES - len(values))
            together[host, int(values[0] == _MERGED_SECONDS)].append([row.osd, *values])
            told.add((row.osd, host))
        for (host, merged), osds in together.items():
            packed = msgspec.msgpack.encode(list(zip(*osds, strict=True)))
            yield {"host": host, "window_start": start, "merged": merged, "packed": packed}


def _by_osd(rows: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for row in rows:
        osds, *columns = msgspec.msgpack.decode(row.packed)
        for osd, *values in zip(osds, *columns, strict=True):
            packed = msgspec.msgpack.encode([row.host, *values])
            yield {"osd": osd, "window_start": row.window_start, "seconds": int(values[0]), "packed": packed}


def _insert_in_batches(statement: Any, rows: Iterator[dict[str, Any]]) -> None:
    connection = op.get_bind()
    while some := list(islice(rows, _AT_ONCE)):
        connection.execute(statement, some)
