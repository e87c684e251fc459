"""Tables of the store: documents as JSON beside the columns that queries need. Portable to PostgreSQL.

Times are microseconds since 1970 in UTC. Documents are what data.store.documents writes; latencies, which are many, are
packed by column (data.store.columns), a host's OSDs in one row. Each `latest_*` table holds one row a device, kept in
the same transaction as its history, so that the whole fleet is one short scan.
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

VERSION = 9
"""Of the tables and of the documents in them; data.store.migrations tells what came with each."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

metadata = MetaData()

# SQLite numbers rows by itself only for INTEGER keys.
_Numbered = BigInteger().with_variant(Integer, "sqlite")


def _written() -> Column[int]:
    """The number of the transaction that wrote the row last (data.store.change_feed); 0: before there were numbers."""
    return Column("written", BigInteger, nullable=False, server_default="0")


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
    _written(),
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
    Column("host", String, primary_key=True),
    Column("window_start", BigInteger, primary_key=True),
    Column("merged", Integer, primary_key=True, autoincrement=False),
    Column("packed", LargeBinary, nullable=False),
)

latency_osds = Table(
    "latency_osds",
    metadata,
    Column("osd", Integer, primary_key=True, autoincrement=False),
    Column("host", String, primary_key=True),
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
    _written(),
    Index("latest_outlooks_by_writing", "written"),
)

drains = Table(
    "drains",
    metadata,
    Column("id", String, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("document", LargeBinary, nullable=False),
    _written(),
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
"""Where each journal that is a chain (data.store.chain) begins and ends: hash and number of the line before its first
one, and of its last one. `adopted`: number of the last line that was written before there was a chain."""

outcomes = Table(
    "outcomes",
    metadata,
    Column("number", _Numbered, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("document", LargeBinary, nullable=False),
    _written(),
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
    Index("life_changes_by_device", "device", "number"),
    Index("life_changes_by_time", "at", "number"),
    sqlite_autoincrement=True,
)
"""`osds`: the slots of the disk as `,3,12,`, empty where it has none."""

cluster_events = Table(
    "cluster_events",
    metadata,
    Column("number", _Numbered, primary_key=True, autoincrement=True),
    Column("subject", String, nullable=False),
    Column("place", Integer, nullable=False),
    Column("kind", String, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("document", LargeBinary, nullable=False),
    UniqueConstraint("subject", "place", name="cluster_events_by_subject"),
    Index("cluster_events_by_time", "at", "number"),
    sqlite_autoincrement=True,
)
"""`place`: which of its subject's events it is, so that no event is appended twice."""

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
"""Tables whose rows say when they were written last."""

# Under the name and in the form that alembic gives it.
version = Table(
    "alembic_version",
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def instant(microseconds_: int) -> datetime:
    """The time that is kept as so many microseconds."""
    return _EPOCH + microseconds_ * _MICROSECOND


def microseconds(time: datetime) -> int:
    """`time` as it is kept. Exact: no float in between."""
    return (time - _EPOCH) // _MICROSECOND
