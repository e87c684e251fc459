# ruff: noqa: S608 - paths and serial numbers are quoted by `quote_sql_text`
"""Copies of a history's rows in scratch files, one set of files for each part of the drives.

The rows lie in the files by day, and the parts are ranges of drives: to read a part in place is to read every file.
So the files are cut into shares where their bytes lie (row groups of parquet, whole CSV files), each share is read
once, and its rows are written to the files of their parts. Several processes may copy, each a share.
"""

from __future__ import annotations

import shutil
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from predrain.data.history.history_tables import (
    Table,
    UnreadableHistory,
    ask_duckdb,
    is_parquet,
    open_duckdb,
    quote_sql_text,
)

if TYPE_CHECKING:
    import duckdb

Share = TypeVar("Share")
Answer = TypeVar("Answer")

COPYING: Final = "1GB"
"""Memory for copying a share; the rest goes to a folder for temporary files of the process that copies."""
SHARES_A_WORKER: Final = 2
"""Shares for each worker: with one share each the slowest worker would be waited for longer."""


class Copiers(Protocol):
    """Processes that copy rows. They read the history files and write the scratch folder by the same paths."""

    @property
    def workers(self) -> int:
        """The number of processes."""
        ...

    def map_parts(self, work: Callable[[Share], Answer], parts: Sequence[Share]) -> Iterator[Answer]:
        """Yield the answers of `work`, which is a module's function or a partial of one, in order."""
        ...


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Rows [first, end) of a file; None: all of them."""

    table: Table
    rows: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class FileShare:
    """The slices of files that one process copies."""

    number: int
    slices: tuple[FileSlice, ...]


@dataclass(frozen=True, slots=True)
class RowCopies:
    """The place of the copied rows of one part."""

    folder: Path
    part: int
    broken: int
    """CSV lines that were left out while all parts were copied; 0 for each part but the first."""

    def build_select_sql(self) -> str:
        """Return SQL for the part's rows. Raises UnreadableHistory if the folder cannot be seen."""
        if not self.folder.exists():
            raise build_unshared_error(self.folder)
        source = quote_sql_text(f"{self.folder}/share-*/part={self.part}/*.parquet")
        return f"SELECT * FROM read_parquet({source}, hive_partitioning = false)"


def cut_into_shares(
    connection: duckdb.DuckDBPyConnection, tables: Sequence[Table], count: int
) -> list[FileShare]:
    """Cut the files into at most `count` shares of about as many bytes. No row group is cut, and no CSV file."""
    pieces = [piece for table in tables for piece in _list_pieces(connection, table)]
    before = list(accumulate((size for _, size in pieces), initial=0.0))
    bounds = [before[-1] * number / count for number in range(1, count)]
    shares: list[list[FileSlice]] = [[] for _ in range(count)]
    for (piece, size), start in zip(pieces, before, strict=False):
        mine = shares[bisect_right(bounds, start + size / 2)]
        last = mine[-1] if mine else None
        if last is not None and last.table is piece.table and last.rows and piece.rows:
            mine[-1] = FileSlice(piece.table, (last.rows[0], piece.rows[1]))
        else:
            mine.append(piece)
    return [FileShare(number, tuple(share)) for number, share in enumerate(shares) if share]


def _list_pieces(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[tuple[FileSlice, float]]:
    """Yield the row groups of a parquet file, or the whole CSV file, each with its size in bytes."""
    size = table.path.stat().st_size
    if not is_parquet(table.path):
        yield FileSlice(table), size
        return
    query = (
        "SELECT any_value(row_group_num_rows) "
        f"FROM parquet_metadata({quote_sql_text(str(table.path))}) GROUP BY row_group_id ORDER BY row_group_id"
    )
    groups = [int(rows) for (rows,) in ask_duckdb([table.path], lambda: connection.execute(query).fetchall())]
    total, first = sum(groups), 0
    for rows in groups:
        if rows:
            yield FileSlice(table, (first, first + rows)), size * rows / total
        first += rows


def copy_share(share: FileShare, *, folder: Path, lows: Sequence[str], threads: int) -> int:
    """Copy the rows of a share to `folder`, those of part n to `share-*/part=n`; return the lines left out.

    `lows` are the serial numbers at which parts 1, 2, ... begin. Rows without a serial number go to part 0. A share
    that is there already stays: it was copied by a worker that seemed lost. Raises UnreadableHistory.
    """
    paths = [one.table.path for one in share.slices]
    for place in (folder, *paths):
        if not place.exists():
            raise build_unshared_error(place)
    rows = " UNION ALL ".join(one.table.build_select_sql(one.rows) for one in share.slices)
    with tempfile.TemporaryDirectory(prefix="predrain-spill-") as spill:
        made = Path(tempfile.mkdtemp(prefix="copying-", dir=folder))
        with open_duckdb(threads=threads, memory_limit=COPYING, temp_directory=spill) as connection:
            copying = (
                f"COPY (SELECT *, {_build_part_number_sql(lows)} AS part FROM ({rows})) TO "
                f"{quote_sql_text(str(made))} (FORMAT parquet, PARTITION_BY (part), COMPRESSION lz4, "
                "OVERWRITE_OR_IGNORE)"
            )
            ask_duckdb(paths, lambda: connection.execute(copying))
            broken = count_broken_lines(connection, paths)
        copied = folder / f"share-{share.number}"
        try:
            made.rename(copied)
        except OSError:
            if not copied.is_dir():
                raise
            shutil.rmtree(made)
    return broken


def build_unshared_error(place: Path) -> UnreadableHistory:
    """Build the error for a folder or a file that a worker does not see."""
    return UnreadableHistory(
        f"A worker sees no {place}; keep the histories on a file system that all workers share, and name a folder "
        "there by TMPDIR."
    )


def count_broken_lines(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path]) -> int:
    """Return the number of CSV lines that the connection's last query could not parse."""
    if all(is_parquet(path) for path in paths):
        return 0
    query = "SELECT count(*) FROM (SELECT DISTINCT scan_id, file_id, line FROM reject_errors)"
    return int(connection.execute(query).fetchall()[0][0])


def _build_part_number_sql(lows: Sequence[str], first: int = 0) -> str:
    """Return SQL for the number of a row's part, by bisection."""
    if not lows:
        return str(first)
    middle = len(lows) // 2
    lower = _build_part_number_sql(lows[:middle], first)
    upper = _build_part_number_sql(lows[middle + 1 :], first + middle + 1)
    return f"CASE WHEN serial >= {quote_sql_text(lows[middle])} THEN {upper} ELSE {lower} END"
