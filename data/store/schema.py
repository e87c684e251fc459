"""Tables of the store: documents as JSON beside the columns that queries need. Portable to PostgreSQL.

Times are microseconds since 1970 in UTC. Documents are what data.wire.bodies writes. Each `latest_*` table
holds one row a device, kept in the same transaction as its history and not packed, so that the whole fleet is
one short scan.
"""

from __future__ import annotations

import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, String, Table, Text
from sqlalchemy.types import TypeDecorator

VERSION = 2
"""Of the tables and of the documents in them. Since 2: `checkpoints`."""
ONLY_MORE_TABLES = frozenset({1})
"""Older versions that lack tables and are else as this one: they are brought up to it where they are opened."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

metadata = MetaData()


class Packed(TypeDecorator[bytes]):
    """Bytes deflated on their way in: a drive's history takes a quarter of the room."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: bytes | None, dialect: Any) -> bytes | None:  # noqa: ARG002
        return None if value is None else zlib.compress(value, 1)

    def process_result_value(self, value: Any, dialect: Any) -> bytes | None:  # noqa: ARG002
        return None if value is None else zlib.decompress(value)


# SQLite numbers rows by itself only for INTEGER keys.
_Numbered = BigInteger().with_variant(Integer, "sqlite")

readings = Table(
    "readings",
    metadata,
    Column("device", String, primary_key=True),
    Column("taken_at", BigInteger, primary_key=True),
    Column("document", Packed, nullable=False),
)

latest_readings = Table(
    "latest_readings",
    metadata,
    Column("device", String, primary_key=True),
    Column("taken_at", BigInteger, nullable=False),
    Column("document", LargeBinary, nullable=False),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("device", String, primary_key=True),
    Column("layout", String, nullable=False),
    Column("through", BigInteger, nullable=False),
    Column("state", LargeBinary, nullable=False),
)

latency = Table(
    "latency",
    metadata,
    Column("osd", Integer, primary_key=True),
    Column("window_start", BigInteger, primary_key=True),
    Column("document", LargeBinary, nullable=False),
)

outlooks = Table(
    "outlooks",
    metadata,
    Column("device", String, primary_key=True),
    Column("as_of", BigInteger, primary_key=True),
    Column("document", Packed, nullable=False),
)

latest_outlooks = Table(
    "latest_outlooks",
    metadata,
    Column("device", String, primary_key=True),
    Column("as_of", BigInteger, nullable=False),
    Column("document", LargeBinary, nullable=False),
)

drains = Table(
    "drains",
    metadata,
    Column("id", String, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("document", Packed, nullable=False),
    Index("drains_by_creation", "created_at", "id"),
)

journal = Table(
    "journal",
    metadata,
    Column("number", _Numbered, primary_key=True, autoincrement=True),
    Column("drain", String, nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("document", LargeBinary, nullable=False),
    Index("journal_by_drain", "drain", "number"),
    sqlite_autoincrement=True,
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("number", _Numbered, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("document", LargeBinary, nullable=False),
    Index("outcomes_by_time", "at", "number"),
    sqlite_autoincrement=True,
)

halt = Table(
    "halt",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("why", Text, nullable=False),
)

schema_version = Table(
    "schema_version",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
)


def instant(microseconds_: int) -> datetime:
    """The time that is kept as so many microseconds."""
    return _EPOCH + microseconds_ * _MICROSECOND


def microseconds(time: datetime) -> int:
    """`time` as it is kept. Exact: no float in between."""
    return (time - _EPOCH) // _MICROSECOND
