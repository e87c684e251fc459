"""Writes the archive of hourly readings: what the store is about to thin, as dated folders of parquet files.

A day is compared with its files, and the readings that they lack are written to one more file: under another name
first, flushed, then renamed. So a run that was killed is repeated without harm, and late readings get a file of their
own. `data.history.archive_reading` describes the files and reads them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from predrain.data.history.archive_reading import (
    COUNTERS,
    DOCUMENT,
    IDENTITY,
    LOGS,
    DamagedPartition,
    list_partition_files,
    list_partitions,
    read_archive_file,
)
from predrain.data.history.drive_rows import EPOCH
from predrain.data.history.history_tables import ARCHIVED, PARTITION
from predrain.data.history.smart_ranges import LIMITS, believable_one
from predrain.data.ids import DeviceId
from predrain.data.reading import Reading, Smart
from predrain.data.refusal import Refusal
from predrain.data.residence import is_apart
from predrain.data.store.store_port import Store
from predrain.data.store.store_schema import to_microseconds
from predrain.data.wire import wire_bodies

if TYPE_CHECKING:
    import pyarrow as pa

TOGETHER: Final = 500
"""Devices whose readings are in memory as objects at once."""
FILE_ROWS: Final = 100_000
"""Readings of a file: as columns they take 150 MB while they are written."""
MOST_COUNTS: Final = 500_000
"""Devices' days after which a run ends, so that the counts fit into memory: the next one goes on from there."""
LOCK: Final = ".lock"
UNFINISHED: Final = ".part"
DROPPED: Final = ".dropped-"
YEAR: Final = timedelta(days=365.25)
LEVEL: Final = 9
"""The level of zstd."""
CURE: Final = (
    "free space there, or name another folder as `archive` of [retention]; nothing is thinned until then"
)
_WIDEST: Final = 2**63
_TEXTS: Final = frozenset({
    "serial_number", "model", "device", "host", "osd_devices", "protocol", "exit_bits", "attribute_table",
    "unreadable_why", "unreadable_cause",
    *(f"identity_{name}" for name in ("vendor", "model", "family", "serial", "wwn", "firmware")),
})  # fmt: skip
_TIMES: Final = frozenset({"taken_at", "received_at", "unreadable_since"})
_TRUTHS: Final = frozenset({"daily", "passed", "has_logs"})

FeatureValues = Callable[[Smart], Mapping[int, float]]
"""SMART id -> plausible decoded count, as the features use it."""


class ArchiveUnwritable(Refusal):
    """The archive cannot be written, so nothing may be thinned."""


@dataclass(frozen=True, slots=True)
class ArchivedDays:
    """The result of a run. `readings`: how many were written."""

    readings: int
    counts: Mapping[tuple[DeviceId, date], int]
    """The number of a device's readings of a day, all of which are in the archive; days with one are left out."""
    left: tuple[date, ...] = ()
    """Days for the next run."""
    damaged: tuple[str, ...] = ()
    """A sentence for each file that cannot be read."""


def archive_days(
    store: Store, folder: Path, values: FeatureValues, days: Sequence[date], died: Mapping[DeviceId, date]
) -> ArchivedDays:
    """Write what the archive lacks of the days; all of it is durable when this returns. `died`: the days of deaths.

    Raises ArchiveUnwritable, and the errors of the store.
    """
    counts: dict[tuple[DeviceId, date], int] = {}
    damaged: list[str] = []
    written = done = 0
    with _lock_archive(folder):
        for day in days:
            if len(counts) > MOST_COUNTS:
                break
            work = _ArchivedDay(store, folder, values, day, died)
            written += work.write_missing()
            counts.update(work.list_counts())
            damaged += work.damaged
            done += 1
    return ArchivedDays(written, counts, tuple(days[done:]), tuple(damaged))


def drop_old_partitions(folder: Path, years: float) -> tuple[date, ...]:
    """Remove the folders of days that are more than `years` before the newest archived day; return the days.

    The newest day counts and not the clock, so that a clock that runs ahead drops nothing. Raises ArchiveUnwritable.
    """
    partitions = list_partitions(folder)
    gone = [day for day in partitions if max(partitions) - day > years * YEAR]
    with _lock_archive(folder):
        for day in gone:
            # A folder that is half removed is no day any more.
            aside = folder / f"{DROPPED}{day}"
            partitions[day].rename(aside)
            shutil.rmtree(aside)
    return tuple(gone)


@contextmanager
def _lock_archive(folder: Path) -> Iterator[None]:
    """Hold the archive for this process alone, and remove what a killed process left. Raises ArchiveUnwritable."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (folder / LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ArchiveUnwritable(
                    f"another process writes the archive {folder}; the next try follows by itself"
                ) from None
            for path in folder.glob(f"{DROPPED}*"):
                shutil.rmtree(path)
            for path in folder.glob(f"{PARTITION}*/*{UNFINISHED}"):
                path.unlink()
            yield
    except OSError as error:
        raise ArchiveUnwritable(f"the archive {folder} cannot be written ({error}): {CURE}") from error


class _ArchivedDay:
    """A day in the store beside the same day in the archive."""

    def __init__(
        self, store: Store, folder: Path, values: FeatureValues, day: date, died: Mapping[DeviceId, date]
    ) -> None:
        self._store, self._folder, self._values, self._day, self._died = store, folder, values, day, died
        self._files = list_partition_files(folder, day)
        self.damaged: list[str] = []
        self._held = self._list_held_keys()

    def list_counts(self) -> dict[tuple[DeviceId, date], int]:
        """Return the number of readings in the store of each device with several."""
        counted = self._held.group_by("device").aggregate([([], "count_all")])
        pairs = zip(counted["device"].to_pylist(), counted["count_all"].to_pylist(), strict=True)
        return {(DeviceId(device), self._day): count for device, count in pairs if count > 1}

    def write_missing(self) -> int:
        """Write the readings that no file has; return how many."""
        archived = self._read_archived_keys()
        missing = self._held
        if archived is not None:
            missing = missing.join(archived, keys=["device", "taken_at"], join_type="left anti")
        if not missing.num_rows:
            return 0
        wanted = None
        if archived is not None:
            wanted = set(zip(missing["device"].to_pylist(), missing["taken_at"].to_pylist(), strict=True))
        devices = iter(sorted(set(missing["device"].to_pylist())))
        pieces: list[pa.Table] = []
        written = 0
        while some := list(islice(devices, TOGETHER)):
            pieces.append(self._build_rows(some, wanted))
            if sum(piece.num_rows for piece in pieces) >= FILE_ROWS:
                written += self._write_file(pieces)
                pieces = []
        return written + self._write_file(pieces)

    def _list_held_keys(self) -> pa.Table:
        import pyarrow as pa

        schema = pa.schema([("device", pa.string()), ("taken_at", pa.int64())])
        times = self._store.iterate_day_times(self._day)
        pieces = [schema.empty_table()]
        while some := list(islice(times, TOGETHER)):
            pieces.append(
                pa.table(
                    [
                        [one.device for one in some for _ in one.taken_at],
                        [to_microseconds(at) for one in some for at in one.taken_at],
                    ],
                    schema=schema,
                )
            )
        return pa.concat_tables(pieces)

    def _read_archived_keys(self) -> pa.Table | None:
        """Return device and time of what the files hold; None if there is none that can be read."""
        import pyarrow as pa

        found = []
        for path in self._files:
            try:
                table = read_archive_file(path, ["device", "taken_at"])
            except DamagedPartition as damaged:
                self.damaged.append(str(damaged))
                continue
            found.append(
                pa.table(
                    [table["device"].cast(pa.string()), table["taken_at"].cast(pa.int64())],
                    names=["device", "taken_at"],
                )
            )
        return pa.concat_tables(found) if found else None

    def _build_rows(self, devices: Collection[DeviceId], wanted: set[tuple[str, int]] | None) -> pa.Table:
        columns = _Columns()
        for reading in self._store.read_day_readings(self._day, devices):
            if wanted is None or (reading.device, to_microseconds(reading.taken_at)) in wanted:
                columns.add_row(
                    _build_row(reading, self._values, self._died.get(reading.device) == self._day)
                )
        return columns.to_table()

    def _write_file(self, pieces: Sequence[pa.Table]) -> int:
        """Write one file of the day, whole or not at all; return the number of its rows."""
        import pyarrow as pa

        rows = pa.concat_tables(pieces, promote_options="default") if pieces else None
        if rows is None or not rows.num_rows:
            return 0
        partition = self._folder / f"{PARTITION}{self._day}"
        partition.mkdir(mode=0o700, exist_ok=True)
        number = 1 + max((int(one.name.split(".")[0]) for one in self._files), default=0)
        begun = partition / f"{number:04}{UNFINISHED}"
        _write_parquet(rows, begun)
        _flush(begun)
        path = partition / f"{number:04}{ARCHIVED}"
        begun.rename(path)
        _flush(partition)
        _flush(self._folder)
        self._files.append(path)
        return int(rows.num_rows)


class _Columns:
    """Rows as columns; a value that a row lacks is null."""

    def __init__(self) -> None:
        self._rows = 0
        self._columns: dict[str, list[Any]] = {}
        self._last: tuple[DeviceId, int] | None = None
        """Device and number of the last row with `daily`."""

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Add a row. Of the rows of a device the last with `daily` keeps it."""
        for name, value in row.items():
            if value is None:
                continue
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = []
            if len(column) < self._rows:
                column.extend([None] * (self._rows - len(column)))
            column.append(value)
        if row["daily"]:
            if self._last is not None and self._last[0] == row["device"]:
                self._columns["daily"][self._last[1]] = False
            self._last = row["device"], self._rows
        self._rows += 1

    def to_table(self) -> pa.Table:
        """Return the rows, with the columns of a history first."""
        import pyarrow as pa

        names = [*_HISTORY, *sorted(self._columns.keys() - set(_HISTORY))]
        arrays = []
        for name in names:
            values = self._columns.get(name, [])
            values += [None] * (self._rows - len(values))
            kind = _find_column_type(name)
            # Times and days are whole numbers here: a conversion of each by itself takes a hundred times longer.
            plain = {"date": pa.int32()}.get(name, pa.int64() if name in _TIMES else kind)
            arrays.append(pa.array(values, plain).cast(kind))
        return pa.table(arrays, names=names)


_HISTORY: Final = ("date", "serial_number", "model", "failure", "daily", "device", "taken_at")


def _find_column_type(name: str) -> pa.DataType:
    import pyarrow as pa

    if name in _TEXTS:
        return pa.string()
    if name in _TIMES:
        return pa.timestamp("us")
    if name in _TRUTHS:
        return pa.bool_()
    return {"date": pa.date32(), "failure": pa.int8(), DOCUMENT: pa.binary()}.get(name, pa.int64())


def _write_parquet(rows: pa.Table, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # The upper bytes of a counter are alike from row to row, and so are each by itself when the bytes lie apart.
    split = [one.name for one in rows.schema if one.type.id in (pa.int64().id, pa.timestamp("us").id)]
    options: dict[str, Any] = {  # pyarrow's own annotations lack the lists
        "use_dictionary": [name for name in rows.column_names if name not in split],
        "column_encoding": dict.fromkeys(split, "BYTE_STREAM_SPLIT"),
        "write_statistics": ["date", "serial_number", "device", "taken_at"],
    }
    pq.write_table(
        rows, path, compression="zstd", compression_level=LEVEL, row_group_size=rows.num_rows,
        store_schema=False, write_page_checksum=True, **options,
    )  # fmt: skip


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _build_row(reading: Reading, values: FeatureValues, died: bool) -> dict[str, Any]:
    """Return the columns of a reading: those of a history, and those that give it back."""
    smart = reading.seen if isinstance(reading.seen, Smart) else None
    history: dict[str, Any] = {
        "device": reading.device,
        "taken_at": to_microseconds(reading.taken_at),
        "date": (reading.taken_at.astimezone(UTC).date() - EPOCH).days,
        "failure": int(died),
        "daily": smart is not None and not is_apart(reading.device),
    }
    exact: dict[str, Any] = {
        "host": reading.host,
        "received_at": to_microseconds(reading.received_at),
        "osd_devices": msgspec.json.encode(reading.osd_devices).decode() if reading.osd_devices else None,
        "kernel_errors": reading.kernel_errors,
    }
    if smart is None:
        assert not isinstance(reading.seen, Smart)
        exact["unreadable_since"] = to_microseconds(reading.seen.since)
        exact["unreadable_why"], exact["unreadable_cause"] = reading.seen.why, reading.seen.cause.value
    else:
        history["serial_number"] = smart.identity.serial or reading.device.rsplit("_", 1)[-1]
        history["model"] = smart.identity.model or ""
        counts, attributes = _build_counts(smart, values(smart))
        history |= counts
        exact |= attributes | _build_smart_columns(smart)
    if any(type(value) is int and not -_WIDEST <= value < _WIDEST for value in (history | exact).values()):
        small = {
            name: value for name, value in history.items() if type(value) is not int or abs(value) < _WIDEST
        }
        return small | {DOCUMENT: wire_bodies.READING.write(reading)}
    return history | exact


def _build_counts(smart: Smart, values: Mapping[int, float]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns `smart_N_raw` as the features use them, and what gives the attributes back.

    Where the drive's own number says the same to the features, it is the only one.
    """
    counts: dict[str, Any] = {f"smart_{n}_raw": int(value) for n, value in values.items() if value == value}
    exact: dict[str, Any] = {}
    for n, row in smart.attributes.items():
        if n not in LIMITS or _is_same(values.get(n), believable_one(n, float(row.raw))):
            counts[f"smart_{n}_raw"] = row.raw
        else:
            exact[f"attribute_{n}_raw"] = row.raw
        exact[f"smart_{n}_normalized"], exact[f"smart_{n}_worst"] = row.value, row.worst
        exact[f"smart_{n}_packed"] = row.raw_packed
    if smart.attributes:
        table = [(n, row.name, row.threshold) for n, row in smart.attributes.items()]
        exact["attribute_table"] = msgspec.json.encode(table).decode()
    return counts, exact


def _is_same(one: float | None, other: float) -> bool:
    return one is not None and (one == other or (one != one and other != other))


def _build_smart_columns(smart: Smart) -> dict[str, Any]:
    exact: dict[str, Any] = {
        "protocol": smart.protocol.value,
        "passed": smart.passed,
        "power_on_hours": smart.power_on_hours,
        "temperature_c": smart.temperature_c,
        "exit_bits": None if smart.exit_bits is None else msgspec.json.encode(smart.exit_bits).decode(),
        "spare_threshold_pct": smart.spare_threshold_pct,
        "temperature_limit_c": smart.temperature_limit_c,
        "temperature_critical_c": smart.temperature_critical_c,
    }
    exact |= {f"identity_{name}": getattr(smart.identity, name) for name in IDENTITY}
    exact |= {f"counter_{name}": getattr(smart.counters, name) for name in COUNTERS}
    if smart.logs is not None:
        exact["has_logs"] = True
        exact |= {f"log_{name}": getattr(smart.logs, name) for name in LOGS}
    return exact
