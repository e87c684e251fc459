"""The outcomes: when each drive was in service, when it died, and what its counters were.

The outcomes are read from daily files (column `failure`: the day of failure is the first row with failure = 1), and
from change points with a drives table (the last day of a failed drive). This reader belongs to the judge: it shares
no code with the reader of histories for a forecast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from predrain.data.refusal import Refusal
from predrain.models.evaluate.arrays import DAY_BITS, Bools, Floats, Ints, Texts, drive_day

NEVER = 2**19
"""The day of an event that has not happened, far in the future."""
SYMPTOMS = ("smart_5_raw", "smart_187_raw", "smart_188_raw", "smart_197_raw", "smart_198_raw")
READING = ("date", "serial_number", "model", "failure", "smart_9_raw", *SYMPTOMS)
DRIVE = ("serial_number", "model", "first_date", "last_date", "failure")


class UnreadableTruth(Refusal):
    """A truth file is missing, is no parquet or CSV, or lacks columns, or no file says whether drives failed."""


@dataclass(frozen=True, slots=True)
class FailureTruth:
    """Drives (n) and their readings (m, sorted by drive and day). Days are counted from 1970-01-01."""

    serials: Texts
    models: Texts
    first: Ints
    last: Ints
    """(n,) last day in service; the day of failure of a drive that failed."""
    death: Ints
    """(n,) day of failure, NEVER for the others."""
    daily: Bools
    """(n,) True if every day in service has a row, so that a drive without a row for a week is not at risk."""
    left_out: Bools
    """(n,) True if the drive failed on the last day of a drives table: such drives came back (evaluation.md, Traps)."""
    end: int
    """Last day of the data."""
    reading_key: Ints
    """(m,) `drive_day` of each reading, ascending."""
    symptomatic: Bools
    """(m,) True if any of SMART 5, 187, 188, 197, 198 raw is > 0."""
    hours: Floats
    """(m,) SMART 9 raw: power-on hours, NaN where not reported."""

    def select_drives(self, which: Bools) -> FailureTruth:
        """Return the same days with only these drives. which: (n,)."""
        drive = self.reading_key >> DAY_BITS
        kept = which[drive]
        number = np.cumsum(which) - 1
        return replace(
            self,
            serials=self.serials[which],
            models=self.models[which],
            first=self.first[which],
            last=self.last[which],
            death=self.death[which],
            daily=self.daily[which],
            left_out=self.left_out[which],
            reading_key=drive_day(number[drive[kept]], self.reading_key[kept] & (2**DAY_BITS - 1)),
            symptomatic=self.symptomatic[kept],
            hours=self.hours[kept],
        )

    def find_latest_readings(self, drive: Ints, day: Ints) -> Ints:
        """Return the index of each drive's last reading up to and including `day`, or -1 without one."""
        if not len(self.reading_key):
            return np.full(len(drive), -1)
        place = np.searchsorted(self.reading_key, drive_day(drive, day), side="right") - 1
        own = (place >= 0) & (self.reading_key[place] >= drive_day(drive, 0))
        return np.where(own, place, -1)


@dataclass(frozen=True, slots=True)
class _Rows:
    drive: Ints
    day: Ints
    failed: Bools
    has_failure: bool
    symptomatic: Bools
    hours: Floats


class _Drives:
    """Numbers for serial numbers, in the order of the files, with the last model that each drive reported."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}
        self.model: dict[int, str] = {}

    def add(self, table: pa.Table) -> Ints:
        """Return the number of each row's drive: (rows,)."""
        serial = table["serial_number"].cast(pa.string()).combine_chunks().dictionary_encode()
        known = np.array(
            [self.number.setdefault(str(name), len(self.number)) for name in serial.dictionary.to_pylist()],
            dtype=np.int64,
        )
        drive = known[serial.indices.to_numpy(zero_copy_only=False)] if len(known) else np.empty(0, np.int64)
        if "model" in table.column_names and len(drive):
            last = np.full(int(drive.max()) + 1, -1, dtype=np.int64)
            last[drive] = np.arange(len(drive))
            seen = np.flatnonzero(last >= 0)
            models = table["model"].cast(pa.string()).take(pa.array(last[seen])).to_pylist()
            self.model.update(
                (int(number), str(model)) for number, model in zip(seen, models, strict=True) if model
            )
        return drive


def read_truth(paths: Sequence[Path]) -> FailureTruth:
    """Read daily files, change points and drives tables, in any mixture and order. Raises UnreadableTruth."""
    drives, readings, tables = _Drives(), [], []
    for path in paths:
        table = _read_truth_table(path)
        if {"first_date", "last_date", "failure"} <= set(table.column_names):
            tables.append(
                (
                    drives.add(table),
                    to_epoch_days(table["first_date"]),
                    to_epoch_days(table["last_date"]),
                    table["failure"],
                )
            )
        elif "date" in table.column_names:
            readings.append(_build_rows(table, drives))
        else:
            raise UnreadableTruth(
                f"{path} has neither `date` nor `first_date` and `last_date`; give a history or drives table."
            )
    if not tables and not any(rows.has_failure for rows in readings):
        raise UnreadableTruth(
            "The truth says of no drive whether it failed; give daily files with a `failure` column, "
            "or change points together with their drives table."
        )
    return _join_truth(drives, readings, tables)


def to_epoch_days(column: pa.ChunkedArray) -> Ints:
    """Convert a column of dates, timestamps or text (`2018-01-02`, `2018/1/2`) to days since 1970-01-01.

    Raises UnreadableTruth.
    """
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        text = column.cast(pa.string()).combine_chunks().dictionary_encode()
        known = np.array([_parse_day(word) for word in text.dictionary.to_pylist()], dtype=np.int64)
        return known[text.indices.to_numpy(zero_copy_only=False)] if len(known) else np.empty(0, np.int64)
    return np.asarray(column.cast(pa.date32()).cast(pa.int32()).to_numpy(), dtype=np.int64)


def _parse_day(word: str) -> int:
    try:
        year, month, day = (int(part) for part in word[:10].replace("/", "-").split("-"))
        return (date(year, month, day) - date(1970, 1, 1)).days
    except ValueError:
        raise UnreadableTruth(f"{word!r} is no date; write dates as 2018-01-31.") from None


def _read_truth_table(path: Path) -> pa.Table:
    wanted = {*READING, *DRIVE}
    try:
        if path.suffix.lower() == ".csv":
            with path.open(encoding="utf-8") as file:
                names = file.readline().strip().replace('"', "").split(",")
            return pyarrow.csv.read_csv(
                path,
                convert_options=pyarrow.csv.ConvertOptions(
                    include_columns=[name for name in names if name in wanted],
                    column_types={"serial_number": pa.string(), "model": pa.string(), "date": pa.string()}
                    | dict.fromkeys(("smart_9_raw", *SYMPTOMS), pa.float64()),
                ),
            )
        names = pq.read_schema(path).names
        return pq.read_table(path, columns=[name for name in names if name in wanted])
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise UnreadableTruth(
            f"{path} cannot be read as parquet or CSV ({str(error).splitlines()[0]})."
        ) from None


def _build_rows(table: pa.Table, drives: _Drives) -> _Rows:
    if "serial_number" not in table.column_names:
        raise UnreadableTruth("A truth file has no `serial_number` column; give Backblaze-shaped files.")
    drive, day = drives.add(table), to_epoch_days(table["date"])
    symptomatic = np.zeros(len(drive), dtype=bool)
    for name in SYMPTOMS:
        if name in table.column_names:
            symptomatic |= _to_floats(table[name]) > 0
    hours = np.full(len(drive), np.nan)
    if "smart_9_raw" in table.column_names:
        hours = _to_floats(table["smart_9_raw"])
    has_failure = "failure" in table.column_names
    failed = _to_failed_mask(table["failure"]) if has_failure else np.zeros(len(drive), dtype=bool)
    return _Rows(drive, day, failed, has_failure, symptomatic, hours)


def _to_failed_mask(column: pa.ChunkedArray) -> Bools:
    return np.asarray(_to_floats(column) == 1, dtype=bool)


def _to_floats(column: pa.ChunkedArray) -> Floats:
    return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)


def _join_truth(
    drives: _Drives,
    readings: Sequence[_Rows],
    tables: Sequence[tuple[Ints, Ints, Ints, pa.ChunkedArray]],
) -> FailureTruth:
    n = len(drives.number)
    first, last, death = np.full(n, NEVER), np.full(n, -1), np.full(n, NEVER)
    in_table, left_out = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for rows in readings:
        np.minimum.at(first, rows.drive, rows.day)
        np.maximum.at(last, rows.drive, rows.day)
        np.minimum.at(death, rows.drive[rows.failed], rows.day[rows.failed])
    table_end = max((int(until.max()) for _, _, until, _ in tables if len(until)), default=-1)
    for drive, begin, until, failure in sorted(tables, key=lambda table: int(table[2].max(initial=-1))):
        failed = _to_failed_mask(failure)
        first[drive] = np.where(in_table[drive], np.minimum(first[drive], begin), begin)
        last[drive] = until
        death[drive] = np.where(failed, until, NEVER)
        left_out[drive] = failed & (until == table_end)
        in_table[drive] = True
    end = int(last.max(initial=-1))
    last = np.minimum(last, death)
    key = np.concatenate([np.empty(0, np.int64), *(drive_day(rows.drive, rows.day) for rows in readings)])
    symptomatic = np.concatenate([np.empty(0, bool), *(rows.symptomatic for rows in readings)])
    hours = np.concatenate([np.empty(0), *(rows.hours for rows in readings)])
    if np.any(key[1:] < key[:-1]):
        order = np.argsort(key, kind="stable")
        key, symptomatic, hours = key[order], symptomatic[order], hours[order]
    serials = np.array(list(drives.number), dtype=object)
    models = np.array([drives.model.get(number, "") for number in range(n)], dtype=object)
    return FailureTruth(
        serials, models, first, last, death, ~in_table, left_out, end, key, symptomatic, hours
    )  # fmt: skip
