"""Version 3: latencies by position instead of JSON, with their window's seconds beside them; readings with OSD
devices.

The order of fields here is that of version 3 and stays, also if latencies are stored otherwise later.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import op

from predrain.data.store.migrations.rewriting import rewrite_table_rows

revision = "0003"
down_revision = "0002"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OLD_FIELDS = (
    *("host", "window_seconds", "operations"),
    *("read_ms_p50", "read_ms_p99", "write_ms_p50", "write_ms_p99", "commit_ms_p50", "commit_ms_p99"),
    *("device_await_ms", "iops", "queue", "slow_ops"),
)
_NEW_OF_READINGS, _NEW_OF_SMART = ("seats", "kernel_errors"), ("logs",)
_NEW = tuple(f'"{name}"'.encode() for name in (*_NEW_OF_READINGS, *_NEW_OF_SMART))

_latency = sa.table("latency", *map(sa.column, ("osd", "window_start", "seconds", "packed", "document")))


def upgrade() -> None:
    """Pack latencies. Readings that lack the new fields are readable as they are."""
    with op.batch_alter_table("latency") as table:
        table.add_column(sa.Column("seconds", sa.Integer))
        table.add_column(sa.Column("packed", sa.LargeBinary))
    rewrite_table_rows(_latency, ("osd", "window_start"), "document", _pack_latency_row)
    with op.batch_alter_table("latency") as table:
        table.alter_column("seconds", nullable=False)
        table.alter_column("packed", nullable=False)
        table.drop_column("document")
    op.drop_table("schema_version")


def downgrade() -> None:
    """Write latencies as JSON again, and remove from readings the fields that version 2 would refuse."""
    with op.batch_alter_table("latency") as table:
        table.add_column(sa.Column("document", sa.LargeBinary))
    rewrite_table_rows(_latency, ("osd", "window_start"), "packed", _unpack_latency_row)
    with op.batch_alter_table("latency") as table:
        table.alter_column("document", nullable=False)
        table.drop_column("seconds")
        table.drop_column("packed")
    for name, keys, before, after in (
        ("readings", ("device", "taken_at"), zlib.decompress, lambda raw: zlib.compress(raw, 1)),
        ("latest_readings", ("device",), bytes, bytes),
    ):
        table_ = sa.table(name, *map(sa.column, (*keys, "document")))
        rewrite_table_rows(table_, keys, "document", _build_field_stripper(before, after))
    mark = op.create_table(
        "schema_version",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("version", sa.Integer, nullable=False),
    )
    op.bulk_insert(mark, [{"id": 1, "version": 2}])


def _pack_latency_row(row: Any) -> dict[str, Any]:
    held = json.loads(row.document)
    values = [held.get(name) for name in _OLD_FIELDS]
    return {"seconds": int(held["window_seconds"]), "packed": msgspec.msgpack.encode(values)}


def _unpack_latency_row(row: Any) -> dict[str, Any]:
    values = msgspec.msgpack.decode(row.packed)
    start = _EPOCH + row.window_start * timedelta(microseconds=1)
    held = {"osd": row.osd, "window_start": start.isoformat().replace("+00:00", "Z")}
    held |= {name: value for name, value in zip(_OLD_FIELDS, values, strict=False) if value is not None}
    return {"document": json.dumps(held, separators=(",", ":")).encode()}


def _build_field_stripper(
    before: Callable[[bytes], bytes], after: Callable[[bytes], bytes]
) -> Callable[[Any], dict[str, Any] | None]:
    def stripped(row: Any) -> dict[str, Any] | None:
        raw = before(row.document)
        if not any(name in raw for name in _NEW):
            return None
        held = {name: value for name, value in json.loads(raw).items() if name not in _NEW_OF_READINGS}
        for name in _NEW_OF_SMART:
            held.get("smart", {}).pop(name, None)
        return {"document": after(json.dumps(held, separators=(",", ":")).encode())}

    return stripped
