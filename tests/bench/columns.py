"""The cost of readings as columns and as one record each: `python -m tests.bench.columns` (decision 0078).

The cost is the processor time and the bytes for one reading. Each row has the disks of one host, which a collector
could send as one Arrow record batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import zstandard
from rich.console import Console
from rich.table import Table

from predrain.data.clock import SystemClock
from predrain.data.reading import Reading
from predrain.data.wire import accept_reading, decode_envelope
from predrain.service.storage.record_sender import RecordSender
from tests.bench import stage as scene

SIZES = (12, 60, 500)
HOURS, ROUNDS, READINGS_A_ROUND = 5, 9, 2_000


def measure_size(size: int) -> tuple[str, ...]:
    """Return the cells of one row: microseconds of processor and bytes, each for one reading."""
    now = datetime.now(UTC) - timedelta(minutes=5)
    fleet = scene.drives(size)
    sender = RecordSender("host", SystemClock())
    records = [
        sender.encode_envelope(scene.reading(number, smart, now, HOURS)) for number, smart in enumerate(fleet)
    ]
    columns = build_columns(records)

    def decode_records() -> list[Reading]:
        later = now + timedelta(minutes=1)
        return [accept_reading(decode_envelope(one, Reading).body, later) for one in records]

    def decode_columns() -> pa.Table:
        return pa.ipc.open_stream(columns).read_all()

    microseconds = (
        measure_microseconds(work, size)
        for work in (decode_records, decode_columns, lambda: decode_columns().to_pylist())
    )
    packed = len(zstandard.ZstdCompressor(3).compress(b"".join(records)))
    return (
        str(size), *(f"{one:.1f} us" for one in microseconds), f"{packed / size:,.0f} B",
        f"{len(columns) / size:,.0f} B",
    )  # fmt: skip


def build_columns(records: Sequence[bytes]) -> pa.Buffer:
    """Return the readings as an Arrow stream with zstd. Mappings by number become lists of structs."""
    table = pa.Table.from_pylist([list_numbered(msgspec.json.decode(one)["body"]) for one in records])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(table)
    return sink.getvalue()


def list_numbered(value: Any) -> Any:
    """Return the value with each mapping whose keys are numbers as a list, since columns have fixed names."""
    if isinstance(value, list):
        return [list_numbered(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value and all(key.isdigit() for key in value):
        return [{"id": int(key), **row} for key, row in value.items()]
    return {key: list_numbered(one) for key, one in value.items()}


def measure_microseconds(work: Callable[[], object], size: int) -> float:
    """Return the least processor time of several rounds, for one reading."""
    repeats = max(1, READINGS_A_ROUND // size)
    spent = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(repeats):
            work()
        spent.append(time.process_time() - began)
    return min(spent) / repeats / size * 1e6


def main() -> None:
    table = Table(
        "disks",
        "JSON, decoded and checked",
        "columns, to arrays",
        "columns, to rows",
        "JSON, packed",
        "columns, packed",
    )
    for size in SIZES:
        table.add_row(*measure_size(size))
    Console().print(table)


if __name__ == "__main__":
    main()
