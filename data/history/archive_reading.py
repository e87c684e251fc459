"""Reads the archive of hourly readings: the files of its days, and the readings exactly as they were stored.

`day=2026-11-27/0001.hourly.parquet` holds readings of a UTC day, sorted by device and time; late ones are in files with
higher numbers. Each file is a history as training reads it (`date, serial_number, model, failure, smart_N_raw`), with
`daily` true on the last row of each drive. Its other columns give each reading back. An unknown value is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from predrain.data.history.history_tables import ARCHIVED, PARTITION
from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import (
    Attribute,
    Counters,
    Identity,
    Logs,
    OsdDevice,
    Protocol,
    Reading,
    Smart,
    Unreadable,
)
from predrain.data.refusal import Refusal
from predrain.data.unreadable import UnreadableCause
from predrain.data.wire import wire_bodies

if TYPE_CHECKING:
    import pyarrow as pa

IDENTITY: Final = tuple(field.name for field in fields(Identity))
COUNTERS: Final = tuple(field.name for field in fields(Counters))
LOGS: Final = tuple(field.name for field in fields(Logs))
DOCUMENT: Final = "document"
"""The column with the whole JSON of a reading whose numbers are too large for the other columns."""


class DamagedPartition(Refusal):
    """A file of the archive cannot be read."""


def list_partitions(folder: Path) -> dict[date, Path]:
    """Return the folder of each archived day, oldest first. Folders with other names are left out."""
    found = {}
    for path in folder.glob(f"{PARTITION}*"):
        try:
            found[date.fromisoformat(path.name.removeprefix(PARTITION))] = path
        except ValueError:
            continue
    return dict(sorted(found.items()))


def list_partition_files(folder: Path, day: date) -> list[Path]:
    """Return the complete files of a day, in the order in which they were written."""
    return sorted((folder / f"{PARTITION}{day}").glob(f"*{ARCHIVED}"))


def read_archive_file(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of a file; None: all columns. Raises DamagedPartition."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read(columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise DamagedPartition(
            f"{path} is damaged ({' '.join(str(error).split())[:200]}): move it away, or bring it back from a copy; "
            "the other files of the archive can be read without it"
        ) from error


def read_archived_readings(
    folder: Path, first: date, last: date, refuse: Callable[[DamagedPartition], None]
) -> Iterator[Reading]:
    """Yield the readings of the UTC days `first` to `last`: by day, device and time, each once.

    `refuse` gets the error of each file that is damaged; the readings of the other files are yielded.
    """
    for day in list_partitions(folder):
        if not first <= day <= last:
            continue
        found: dict[tuple[DeviceId, datetime], Reading] = {}
        for path in list_partition_files(folder, day):
            try:
                table = read_archive_file(path)
            except DamagedPartition as damaged:
                refuse(damaged)
                continue
            for row in table.to_pylist():
                reading = build_reading(row)
                found.setdefault((reading.device, reading.taken_at), reading)
        yield from (found[key] for key in sorted(found))


def build_reading(row: Mapping[str, Any]) -> Reading:
    """Return the reading of a row; a column that the file lacks is null."""
    if (document := row.get(DOCUMENT)) is not None:
        return wire_bodies.READING.read(document)
    seated = row.get("osd_devices")
    return Reading(
        DeviceId(row["device"]),
        HostName(row["host"]),
        _in_utc(row["taken_at"]),
        _in_utc(row["received_at"]),
        _build_unreadable(row) if row.get("protocol") is None else _build_smart(row),
        () if seated is None else msgspec.json.decode(seated, type=tuple[OsdDevice, ...]),
        row.get("kernel_errors"),
    )


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC)


def _build_unreadable(row: Mapping[str, Any]) -> Unreadable:
    return Unreadable(
        _in_utc(row["unreadable_since"]), row["unreadable_why"], UnreadableCause(row["unreadable_cause"])
    )


def _build_smart(row: Mapping[str, Any]) -> Smart:
    bits = row.get("exit_bits")
    return Smart(
        Protocol(row["protocol"]),
        Identity(**{name: row.get(f"identity_{name}") for name in IDENTITY}),
        row.get("passed"),
        Counters(**{name: row.get(f"counter_{name}") for name in COUNTERS}),
        _build_attributes(row),
        row.get("power_on_hours"),
        row.get("temperature_c"),
        None if bits is None else msgspec.json.decode(bits, type=tuple[int, ...]),
        row.get("spare_threshold_pct"),
        Logs(**{name: row.get(f"log_{name}") for name in LOGS}) if row.get("has_logs") else None,
        row.get("temperature_limit_c"),
        row.get("temperature_critical_c"),
    )


def _build_attributes(row: Mapping[str, Any]) -> dict[int, Attribute]:
    table = row.get("attribute_table")
    if table is None:
        return {}
    found = {}
    for number, name, threshold in _decode_attribute_table(table):
        own = row.get(f"attribute_{number}_raw")
        found[number] = Attribute(
            name,
            row[f"smart_{number}_raw"] if own is None else own,
            row.get(f"smart_{number}_normalized"),
            row.get(f"smart_{number}_worst"),
            threshold,
            row.get(f"smart_{number}_packed"),
        )
    return found


@lru_cache(maxsize=4_096)
def _decode_attribute_table(table: str) -> tuple[tuple[int, str, int | None], ...]:
    return msgspec.json.decode(table, type=tuple[tuple[int, str, int | None], ...])
