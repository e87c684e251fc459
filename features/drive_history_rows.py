"""Accumulate each drive's history into rows of sums, last values and days. One recursion serves two drivers.

`ledger_of` runs the recursion over whole histories, vectorised. `next_row` advances it by one daily value for
the live stream. Every column is a whole number (a count, a day, a degree) held in a float64, so both give the
same bits. A null value leaves the last known value in place: it is neither a rise nor a reset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.history import History

Floats = NDArray[np.float64]

COUNTERS: Final = (5, 187, 188, 197, 198)
"""Error counters whose rises predict failures: reallocated, reported uncorrectable, timeouts, pending,
offline uncorrectable."""
MINOR: Final = (10, 12, 189, 196, 199)
"""Further counts: spin retries, power cycles, high-fly writes, reallocation events, CRC errors."""
WORK: Final = (193, 241, 242)
"""Load cycles, and 512-byte sectors written and read: the workload of the drive."""
LEVELS: Final = (9, 194, *COUNTERS, *MINOR, *WORK)
RISING: Final = (*COUNTERS, *MINOR, *WORK)

NEVER: Final = -1.0e6
"""A day long before any other, which means "has not happened while the drive was watched"."""


def _list_column_names() -> tuple[str, ...]:
    names = ["day"]
    names += [f"level_{n}" for n in LEVELS]
    names += [f"risen_{n}" for n in RISING]
    names += [f"rises_{n}" for n in COUNTERS]
    names += [f"rose_on_{n}" for n in COUNTERS]
    names += [f"first_on_{n}" for n in COUNTERS]
    names += ["most_197", "heat", "warm_days", "clocked_on"]
    return tuple(names)


COLUMNS: Final = _list_column_names()
"""The columns of a row.

level: last known value. risen: sum of increases. rises: rows with an increase. rose_on: day of the last increase.
first_on: day of the first increase from zero. most_197: highest value so far.

heat, warm_days: sum and number of temperatures. clocked_on: day on which the power-on hours last took a new value.
"""
AT: Final[Mapping[str, int]] = {name: index for index, name in enumerate(COLUMNS)}


@dataclass(frozen=True, slots=True)
class FeatureLedger:
    """Accumulated rows of many drives, sorted by drive and day."""

    start: NDArray[np.int64]
    """(drives + 1,)"""
    rows: Mapping[str, Floats]
    """column name -> (rows,)"""


def first_row(day: int, values: Mapping[int, float]) -> Floats:
    """Return the accumulated row after a drive's first daily value. values: SMART id -> decoded count, NaN
    when null."""
    row = np.zeros(len(COLUMNS))
    row[AT["day"]] = day
    for n in LEVELS:
        row[AT[f"level_{n}"]] = values.get(n, np.nan)
    for n in COUNTERS:
        row[AT[f"rose_on_{n}"]] = NEVER
        row[AT[f"first_on_{n}"]] = NEVER
    pending, celsius = values.get(197, np.nan), values.get(194, np.nan)
    row[AT["most_197"]] = 0.0 if np.isnan(pending) else pending
    if not np.isnan(celsius):
        row[AT["heat"]], row[AT["warm_days"]] = celsius, 1.0
    row[AT["clocked_on"]] = NEVER if np.isnan(values.get(9, np.nan)) else day
    return row


def next_row(before: Floats, day: int, values: Mapping[int, float]) -> Floats:
    """Return the accumulated row after one more daily value, which is later than the day of `before`."""
    row: list[float] = before.tolist()
    after = before.copy()
    after[0] = day
    for n, value in values.items():
        place = _PLACES.get(n)
        if place is None or value != value:
            continue
        old = row[place.level]
        if value != old:  # most counts stand still
            after[place.level] = value
            if value > old and place.risen:
                after[place.risen] = row[place.risen] + (value - old)
                if place.rises:
                    after[place.rises] = row[place.rises] + 1.0
                    after[place.rose_on] = day
                    if old == 0.0 and row[place.first_on] == NEVER:
                        after[place.first_on] = day
            if n == 9:
                after[_CLOCKED] = day
        if n == 197 and value > row[_MOST]:
            after[_MOST] = value
        elif n == 194:
            after[_HEAT] = row[_HEAT] + value
            after[_HEAT + 1] = row[_HEAT + 1] + 1.0
    return after


def start_counts_anew(before: Floats, values: Mapping[int, float]) -> Floats:
    """Return `before` with each count set to its present value, so that the step to this value does not count
    as a rise.

    A firmware that was just changed may count differently. The increases before the change stay in the sums.
    """
    row = before.copy()
    for n in RISING:
        value = values.get(n, np.nan)
        if value == value:
            row[AT[f"level_{n}"]] = value
    return row


@dataclass(frozen=True, slots=True)
class _Places:
    """The columns of one SMART attribute; 0 where the attribute has no such column."""

    level: int
    risen: int
    rises: int
    rose_on: int
    first_on: int


_PLACES: Final = {
    n: _Places(*(AT.get(f"{what}_{n}", 0) for what in ("level", "risen", "rises", "rose_on", "first_on")))
    for n in LEVELS
}
_MOST, _HEAT, _CLOCKED = AT["most_197"], AT["heat"], AT["clocked_on"]


def ledger_of(history: History) -> FeatureLedger:
    """Accumulate a whole history. The time is linear in the number of rows."""
    count = len(history.day)
    begin = np.repeat(history.start[:-1], np.diff(history.start))
    is_first = np.zeros(count, dtype=bool)
    is_first[history.start[:-1][np.diff(history.start) > 0]] = True
    index = np.arange(count, dtype=np.int64)
    day = history.day.astype(np.float64)
    rows: dict[str, Floats] = {"day": day}
    nothing = np.full(count, np.nan)
    for n in LEVELS:
        raw = history.raw.get(n)
        rows[f"level_{n}"] = nothing if raw is None else _fill_last_known(raw, begin, index)
    for n in RISING:
        if n not in history.raw:
            rows[f"risen_{n}"] = np.zeros(count)
            if n in COUNTERS:
                rows[f"rises_{n}"] = rows[f"risen_{n}"]
                rows[f"rose_on_{n}"] = rows[f"first_on_{n}"] = np.full(count, NEVER)
            continue
        level = rows[f"level_{n}"]
        before = np.empty(count)
        before[1:] = level[:-1]
        before[is_first] = np.nan
        rise = np.where(level > before, level - before, 0.0)
        rows[f"risen_{n}"] = _since_start(np.cumsum(rise), begin, rise)
        if n in COUNTERS:
            rose = rise > 0
            rows[f"rises_{n}"] = _since_start(
                np.cumsum(rose, dtype=np.float64), begin, rose.astype(np.float64)
            )
            rows[f"rose_on_{n}"] = _last_day(rose, day, begin, index)
            from_zero = rose & (before == 0.0)
            earlier = np.cumsum(from_zero) - from_zero
            rows[f"first_on_{n}"] = _last_day(from_zero & (earlier == earlier[begin]), day, begin, index)
    hours = rows["level_9"]
    ticked = np.isfinite(hours)
    ticked[1:] &= is_first[1:] | (hours[1:] != hours[:-1])
    rows["clocked_on"] = _last_day(ticked, day, begin, index)
    pending = history.raw.get(197)
    rows["most_197"] = np.zeros(count) if pending is None else _running_maximum(pending, history.start)
    celsius = history.raw.get(194)
    warm = np.zeros(count) if celsius is None else np.isfinite(celsius).astype(np.float64)
    heat = np.zeros(count) if celsius is None else np.nan_to_num(celsius)
    rows["heat"] = _since_start(np.cumsum(heat), begin, heat)
    rows["warm_days"] = _since_start(np.cumsum(warm), begin, warm)
    return FeatureLedger(history.start, rows)


def _fill_last_known(raw: Floats, begin: NDArray[np.int64], index: NDArray[np.int64]) -> Floats:
    """Return the last known value of each row within its drive."""
    known = np.maximum.accumulate(np.where(np.isfinite(raw), index, -1))
    return np.where(known >= begin, raw[np.maximum(known, 0)], np.nan)


def _since_start(total: Floats, begin: NDArray[np.int64], step: Floats) -> Floats:
    """Return the day of the last marked row so far within the drive, or NEVER without one."""
    if not len(total):
        return total
    return total - (total[begin] - step[begin])


def _last_day(
    mark: NDArray[np.bool_], day: Floats, begin: NDArray[np.int64], index: NDArray[np.int64]
) -> Floats:
    """Return the day of the last marked row so far within the drive, or NEVER without one."""
    marked = np.maximum.accumulate(np.where(mark, index, -1))
    return np.where(marked >= begin, day[np.maximum(marked, 0)], NEVER)


def _running_maximum(raw: Floats, start: NDArray[np.int64]) -> Floats:
    """Return the highest value so far within each drive, at least 0.

    Each drive's values are shifted into a band of their own, so that one pass serves all drives.
    """
    value = np.nan_to_num(raw)
    band = 2.0**33
    drive = np.repeat(np.arange(len(start) - 1, dtype=np.float64), np.diff(start))
    lifted: Floats = np.maximum.accumulate(value + drive * band) - drive * band
    return lifted
