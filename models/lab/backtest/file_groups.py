"""Groups of files. Files of the same format belong together and are judged together; all of them are learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from predrain.data.history import EPOCH, UnreadableHistory, columns_of, is_history
from predrain.data.lifespan import HistorySource, sources_of


@dataclass(frozen=True, slots=True)
class BacktestFleet:
    """Histories of one kind, and the files that tell how their drives ended."""

    name: str
    """`daily` or `changes`."""
    readings: tuple[Path, ...]
    truth: tuple[Path, ...]
    """The readings and, for change points, their drives tables."""
    start: date
    end: date
    """First and last day in service of any drive."""


def fleets_of(paths: Sequence[Path], *, threads: int = 2) -> list[BacktestFleet]:
    """Group daily files with a `failure` column, and change points with their drives tables. Raises
    UnreadableHistory."""
    fleets = []
    for source in sources_of(paths, threads=threads):
        if not len(source.lifespans.serials):
            raise UnreadableHistory(
                f"{source.files[0]} holds no row with a serial number and a date; leave it out."
            )
        tables = _find_drives_tables(paths, source)
        fleets.append(
            BacktestFleet(
                "changes" if tables else "daily",
                source.files,
                (*source.files, *tables),
                EPOCH + timedelta(int(source.lifespans.first.min())),
                EPOCH + timedelta(int(source.lifespans.last.max())),
            )
        )
    return fleets


def _find_drives_tables(paths: Sequence[Path], source: HistorySource) -> tuple[Path, ...]:
    """Find the drives tables that tell how the drives of these files ended; none if the files have a
    `failure` column."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        columns = {path: columns_of(connection, path) for path in paths}
    if any("failure" in columns[path] for path in source.files):
        return ()
    return tuple(path for path in paths if not is_history(columns[path]))
