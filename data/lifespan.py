# ruff: noqa: S608 - table functions, columns and days cannot be bound as parameters; paths are quoted
"""The observation times and deaths of drives, as far as training may know them.

In daily files the day of death is the first row with failure = 1. Change points need a drives table beside them
(`serial_number, first_date, last_date, failure`). Everything is rebuilt as it was known on the `until` day: a drive
that died or left later is in service. A drive that leaves without failing is censored, not healthy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.history import EPOCH, HistoryFiles, UnreadableHistory, columns_of, day_sql, table_of
from predrain.data.history.history_tables import open_duckdb


@dataclass(frozen=True, slots=True)
class Lifespans:
    """One span of observation for each drive, aligned to `serials`."""

    serials: NDArray[np.object_]
    """(drives,) serial numbers, sorted."""
    first: NDArray[np.int64]
    """(drives,) first observed day, days since 1970-01-01."""
    last: NDArray[np.int64]
    """(drives,) day of death, or the last day on which the drive is known to have been alive."""
    died: NDArray[np.bool_]
    """(drives,) True if the drive died."""

    def find_positions(self, serials: NDArray[np.object_]) -> NDArray[np.int64]:
        """Return the position of each serial number in `serials`, -1 if it is unknown."""
        if not len(self.serials):
            return np.full(len(serials), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.serials, serials), len(self.serials) - 1)
        return np.where(self.serials[at] == serials, at, -1)


BATCH: Final = 10
"""Number of deaths of one model on one day from which on they count as one event: a retirement that was recorded as
failures, a host's failure that was recorded for its disks, or a faulty script."""


def without_batches(lifespans: Lifespans, model: NDArray[np.object_]) -> Lifespans:
    """Return the same lives, but count drives as removed if `BATCH` or more of their model died on that day.

    `model` is (drives,); only the models of dead drives are used.
    """
    dead = np.flatnonzero(lifespans.died)
    if not len(dead):
        return lifespans
    pair = np.array([f"{m}\t{d}" for m, d in zip(model[dead], lifespans.last[dead], strict=True)], dtype=str)
    _, at, count = np.unique(pair, return_inverse=True, return_counts=True)
    died = lifespans.died.copy()
    died[dead[count[at] >= BATCH]] = False
    return replace(lifespans, died=died)


@dataclass(frozen=True, slots=True)
class HistorySource:
    """Histories that were recorded in the same way, with the ends of their drives."""

    files: tuple[Path, ...]
    lifespans: Lifespans


def sources_of(paths: Sequence[Path], *, until: date | None = None, threads: int = 2) -> list[HistorySource]:
    """Group the files for training: daily files that carry `failure`, and change points with their drives tables.

    The same drive in two groups gives two spans: the time between them is unknown. Raises UnreadableHistory.
    """
    files = HistoryFiles(paths, threads=threads)
    with open_duckdb(threads=threads) as connection:
        daily = [path for path in files.paths if "failure" in columns_of(connection, path)]
        changes = [path for path in files.paths if path not in daily]
        if changes and not files.others:
            raise UnreadableHistory(
                f"{changes[0]} has no failure column; give its drives table "
                "(serial_number, first_date, last_date, failure) beside it."
            )
        groups = (
            (daily, _ends_of_daily),
            (changes, lambda c, _paths, u: _ends_of_tables(c, files.others, u)),
        )
        high = None if until is None else (until - EPOCH).days
        return [HistorySource(tuple(group), ends(connection, group, high)) for group, ends in groups if group]


def _ends_of_daily(connection: object, paths: Sequence[Path], until: int | None) -> Lifespans:
    rows = " UNION ALL ".join(
        f"SELECT CAST(serial_number AS VARCHAR) AS serial, {day_sql('date')} AS day, "
        f"TRY_CAST(failure AS INTEGER) AS failure FROM {table_of(path)}"
        for path in paths
    )
    cut = "" if until is None else f" AND day <= {until}"
    return _query_lifespans(
        connection,
        f"SELECT serial, min(day) AS first, coalesce(min(day) FILTER (WHERE failure = 1), max(day)) AS last, "
        f"count(*) FILTER (WHERE failure = 1) > 0 AS died FROM ({rows}) "
        f"WHERE serial IS NOT NULL AND day IS NOT NULL{cut} GROUP BY serial ORDER BY serial",
    )


def _ends_of_tables(connection: object, paths: Sequence[Path], until: int | None) -> Lifespans:
    rows = " UNION ALL ".join(
        f"SELECT CAST(serial_number AS VARCHAR) AS serial, {day_sql('first_date')} AS first, "
        f"{day_sql('last_date')} AS last, TRY_CAST(failure AS INTEGER) = 1 AS died FROM {table_of(path)}"
        for path in paths
    )
    end = 1 << 30 if until is None else until
    return _query_lifespans(
        connection,
        f"SELECT serial, min(first) AS first, least(max(last), {end}) AS last, "
        f"bool_or(died AND last <= {end}) AS died FROM ({rows}) "
        f"WHERE serial IS NOT NULL AND first <= {end} GROUP BY serial ORDER BY serial",
    )


def _query_lifespans(connection: object, query: str) -> Lifespans:
    import duckdb

    assert isinstance(connection, duckdb.DuckDBPyConnection)
    table = connection.sql(query).to_arrow_table()
    serials = np.array(table["serial"].to_pylist(), dtype=object)
    order = np.argsort(serials, kind="stable")
    return Lifespans(
        serials=serials[order],
        first=np.asarray(table["first"].to_numpy(), dtype=np.int64)[order],
        last=np.asarray(table["last"].to_numpy(), dtype=np.int64)[order],
        died=np.asarray(table["died"].to_numpy(), dtype=bool)[order],
    )
