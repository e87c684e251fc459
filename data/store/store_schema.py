"""Tables of the store: documents as JSON beside the columns that queries need. Portable to PostgreSQL.

Times are microseconds since 1970 in UTC. Documents are written by data.store.documents. Latencies, which are many,
are packed by column (data.store.latency_columns), the OSDs of a host in one row. Each `latest_*` table holds
one row for each device, written in the same transaction as its history, so that the whole fleet is one short scan.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)

VERSION = 12
"""Version of the tables and of the documents in them; data.store.migrations describes each version."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

metadata = MetaData()

# SQLite numbers rows by itself only for INTEGER keys.
_Numbered = BigInteger().with_variant(Integer, "sqlite")


def _build_written_column() -> Column[int]:
    """Build the column with the number of the transaction that wrote the row last (data.store.change_feed).

    The number is 0 for rows from before there were numbers.
    """
    return Column("written", BigInteger, nullable=False, server_default="0")


def _build_cluster_column() -> Column[str]:
    """Build the column with the fsid of the cluster whose OSDs the row is about (data.store.store_cluster)."""
    return Column("cluster", String, nullable=False, server_default="")


readings = Table(
    "readings",
    metadata,
    Column("device", String, primary_key=True),
    Column("taken_at", BigInteger, primary_key=True),
    Column("document", LargeBinary, nullable=False),
)

latest_readings = Table(
    "latest_readings",
    metadata,
    Column("device", String, primary_key=True),
    Column("taken_at", BigInteger, nullable=False),
    Column("document", LargeBinary, nullable=False),
    _build_written_column(),
    Index("latest_readings_by_writing", "written"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("device", String, primary_key=True),
    Column("layout", String, nullable=False),
    Column("through", BigInteger, nullable=False),
    Column("state", LargeBinary, nullable=False),
)

host_latency = Table(
    "host_latency",
    metadata,
    Column("host", String, nullable=False),
    Column("window_start", BigInteger, nullable=False),
    Column("merged", Integer, nullable=False),
    Column("packed", LargeBinary, nullable=False),
    _build_cluster_column(),
    PrimaryKeyConstraint("host", "window_start", "merged", "cluster", name="host_latency_pkey"),
)

latency_osds = Table(
    "latency_osds",
    metadata,
    Column("osd", Integer, nullable=False),
    Column("host", String, nullable=False),
    _build_cluster_column(),
    PrimaryKeyConstraint("osd", "host", "cluster", name="latency_osds_pkey"),
    Index("latency_osds_by_host", "host"),
)

outlooks = Table(
    "outlooks",
    metadata,
    Column("device", String, primary_key=True),
    Column("as_of", BigInteger, primary_key=True),
    Column("document", LargeBinary, nullable=False),
)

latest_outlooks = Table(
    "latest_outlooks",
    metadata,
    Column("device", String, primary_key=True),
    Column("as_of", BigInteger, nullable=False),
    Column("document", LargeBinary, nullable=False),
    _build_written_column(),
    Index("latest_outlooks_by_writing", "written"),
)

drains = Table(
    "drains",
    metadata,
    Column("id", String, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("document", LargeBinary, nullable=False),
    _build_written_column(),
    _build_cluster_column(),
    PrimaryKeyConstraint("id", "cluster", name="drains_pkey"),
    Index("drains_by_creation", "created_at", "id"),
    Index("drains_by_writing", "written"),
)

journal = Table(
    "journal",
    metadata,
    Column("number", _Numbered, primary_key=True, autoincrement=True),
    Column("drain", String, nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("document", LargeBinary, nullable=False),
    Column("hash", LargeBinary),
    Index("journal_by_drain", "drain", "number"),
    sqlite_autoincrement=True,
)

chains = Table(
    "chains",
    metadata,
    Column("journal", String, primary_key=True),
    Column("anchor", LargeBinary, nullable=False),
    Column("anchored", BigInteger, nullable=False),
    Column("head", LargeBinary, nullable=False),
    Column("ended", BigInteger, nullable=False),
    Column("adopted", BigInteger, nullable=False),
)
"""The begin and end of each journal that is a chain (data.store.audit_chain): hash and number of the line
before its first one, and of its last one. `adopted` is the number of the last line that was written before
there was a chain."""

outcomes = Table(
    "outcomes",
    metadata,
    Column("number", _Numbered, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("document", LargeBinary, nullable=False),
    _build_written_column(),
    Index("outcomes_by_time", "at", "number"),
    Index("outcomes_by_writing", "written"),
    sqlite_autoincrement=True,
)

life_changes = Table(
    "life_changes",
    metadata,
    Column("number", _Numbered, primary_key=True, autoincrement=True),
    Column("device", String, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("document", LargeBinary, nullable=False),
    Column("osds", String, nullable=False, server_default=""),
    _build_cluster_column(),
    Index("life_changes_by_device", "device", "number"),
    Index("life_changes_by_time", "at", "number"),
    sqlite_autoincrement=True,
)
"""`osds`: the slots of the disk as `,3,12,`, empty if it has none."""

cluster_events = Table(
    "cluster_events",
    metadata,
    Column("number", _Numbered, primary_key=True, autoincrement=True),
    Column("subject", String, nullable=False),
    Column("place", Integer, nullable=False),
    Column("kind", String, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("document", LargeBinary, nullable=False),
    _build_cluster_column(),
    UniqueConstraint("subject", "place", "cluster", name="cluster_events_by_subject"),
    Index("cluster_events_by_time", "at", "number"),
    sqlite_autoincrement=True,
)
"""`place`: the number of the event among the events of its subject, so that no event is appended twice."""

halt = Table(
    "halt",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("why", Text, nullable=False),
)

notes = Table(
    "notes",
    metadata,
    Column("room", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("document", LargeBinary, nullable=False),
)

FOLLOWED = (latest_readings, latest_outlooks, drains, outcomes)
"""Tables whose rows carry the number of the transaction that wrote them last."""

# The name and form that alembic gives its own table.
version = Table(
    "alembic_version",
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def from_microseconds(microseconds_: int) -> datetime:
    """Return the time that is stored as so many microseconds."""
    return _EPOCH + microseconds_ * _MICROSECOND


def to_microseconds(time: datetime) -> int:
    """Return `time` as it is stored. Exact: no float in between."""
    return (time - _EPOCH) // _MICROSECOND
