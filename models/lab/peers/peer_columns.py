# ruff: noqa: S608 - table functions and columns cannot be bound as parameters; paths are quoted
"""The values that peers read and `History` lacks: normalised values, and raw values of further attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from predrain.data.history import LIMITS, History, columns_of, day_sql, table_of
from predrain.models.evaluate.arrays import Floats, drive_day

if TYPE_CHECKING:
    import duckdb

RAW: Final = (1, 7, 11, 183, 190)
"""Attributes whose raw values `scrutiny` and `redhat_recipe` read."""
NORMALISED: Final = (1, 2, 3, 4, 5, 7, 8, 10, 12, 22, 184, 187, 188, 190, 193, 196, 197, 198, 240, 241)
"""Attributes whose normalised values `vendor`, `scrutiny` and `redhat_recipe` read."""


@dataclass(frozen=True, slots=True)
class SmartColumns:
    """SMART id -> (rows,) values beside a history's rows, NaN where not reported."""

    raw: Mapping[int, Floats] = field(default_factory=dict)
    normalised: Mapping[int, Floats] = field(default_factory=dict)


NOTHING: Final = SmartColumns()


def load_peer_columns(paths: Sequence[Path], history: History, *, threads: int = 2) -> SmartColumns:
    """Read these files' columns into the order of the history's rows. A column that no file fills is left out.

    If a drive has several rows on one day, the last one counts. Raises UnreadableHistory.
    """
    import duckdb

    with duckdb.connect(":memory:", config={"threads": threads}) as connection:
        connection.execute("SET enable_progress_bar = false")  # the bar would go to stdout after 2 s
        there = {path: columns_of(connection, path) for path in paths}
        wanted = [f"smart_{n}_raw" for n in RAW if n not in LIMITS]
        wanted += [f"smart_{n}_normalized" for n in NORMALISED]
        filled = [name for name in wanted if any(name in columns for columns in there.values())]
        if not filled:
            return NOTHING
        found = {name: _load_column(connection, there, name, history) for name in filled}
    pick = {name: values for name, values in found.items() if not np.isnan(values).all()}
    return SmartColumns(
        raw={n: pick[f"smart_{n}_raw"] for n in RAW if f"smart_{n}_raw" in pick},
        normalised={n: pick[f"smart_{n}_normalized"] for n in NORMALISED if f"smart_{n}_normalized" in pick},
    )


def _load_column(
    connection: duckdb.DuckDBPyConnection, there: Mapping[Path, frozenset[str]], name: str, history: History
) -> Floats:
    union = " UNION ALL ".join(
        f"SELECT CAST(serial_number AS VARCHAR) AS serial, {day_sql('date')} AS day, "
        f"TRY_CAST({name} AS DOUBLE) AS value FROM {table_of(path)}"
        for path, columns in there.items()
        if name in columns
    )
    table = connection.sql(
        f"SELECT serial, day, last(value) AS value FROM ({union}) "
        "WHERE serial IS NOT NULL AND day IS NOT NULL AND value >= 0 GROUP BY serial, day"
    ).to_arrow_table()
    serials = np.array(table["serial"].to_pylist(), dtype=object)
    day = np.asarray(table["day"].to_numpy(), dtype=np.int64)
    values = np.full(len(history.day), np.nan)
    if not len(history.day) or not len(day):
        return values
    drive = np.minimum(np.searchsorted(history.serials, serials), history.drives - 1)
    known = history.serials[drive] == serials
    key = drive_day(history.drive.astype(np.int64), history.day.astype(np.int64))
    wanted = drive_day(drive[known].astype(np.int64), day[known])
    place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    same = key[place] == wanted
    values[place[same]] = np.asarray(table["value"].to_numpy(), dtype=np.float64)[known][same]
    return values
