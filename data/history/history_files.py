# ruff: noqa: S608 - serial numbers and days are quoted or numbers; paths are quoted by `data.history.history_tables`
"""A set of history files, read whole or a part of the drives at a time, in memory that does not grow with the files.

A part is a range of serial numbers that holds about as many rows as asked for, so the results of the parts are in the
order of the drives. If every file would have to be read many times, the rows are first copied to scratch files of
each part (`data.history.row_copies`).
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from predrain.data.history.drive_rows import EPOCH, FIRST_DAY, History, HistoryDefects, Keep, history_of
from predrain.data.history.history_tables import (
    CANONICAL,
    Table,
    UnreadableHistory,
    ask_duckdb,
    is_history,
    is_parquet,
    open_duckdb,
    quote_sql_text,
    types_of,
)
from predrain.data.history.row_copies import (
    SHARES_A_WORKER,
    Copiers,
    RowCopies,
    copy_share,
    count_broken_lines,
    cut_into_shares,
)

ROWS_A_PART: Final = 750_000
SCANS: Final = 8
"""Number of parts up to which threads read a parquet file again for each part: a copy of the rows costs as much as so
many reads."""


@dataclass(frozen=True, slots=True)
class SerialRange:
    """The drives with serial numbers in [low, high); None: no bound."""

    low: str | None = None
    high: str | None = None
    copies: RowCopies | None = None
    """The copies of their rows; None: the rows are read from the files themselves."""

    def to_sql_condition(self) -> str:
        """Return the range as SQL.

        Rows without a serial number belong to the first part, so that they are counted once.
        """
        low = "true" if self.low is None else f"serial >= {quote_sql_text(self.low)}"
        high = "true" if self.high is None else f"serial < {quote_sql_text(self.high)}"
        return f"({low} AND {high})" if self.low is not None else f"(serial IS NULL OR {high})"


WHOLE: Final = SerialRange()


class HistoryFiles:
    """Files of readings (`paths`), and drives tables that came with them (`others`)."""

    def __init__(self, paths: Sequence[Path], *, threads: int = 2, forgiving: bool = False) -> None:
        """Read the files' columns. Raises UnreadableHistory when a file is missing or of another shape.

        With `forgiving`, such files are left out as long as one can be read; `refused` gives the reason for each.
        """
        self._threads = threads
        self._connection = open_duckdb(threads=threads)
        self._tables: list[Table] = []
        self.others: list[Path] = []
        self.refused: list[str] = []
        for path in paths:
            try:
                self._add(path)
            except UnreadableHistory as why:
                if not forgiving or len(paths) == 1:
                    raise
                self.refused.append(str(why))
        if not self._tables:
            raise UnreadableHistory(
                " ".join(self.refused)
                or "No history among the files; give at least one with date, serial_number, model."
            )

    def _add(self, path: Path) -> None:
        types = types_of(self._connection, path)
        if is_history(types):
            self._tables.append(Table(path, len(self._tables), types))
        elif {"serial_number", "last_date", "failure"} <= set(types):
            self.others.append(path)
        else:
            raise UnreadableHistory(
                f"{path} lacks date, serial_number or model; give Backblaze-shaped parquet or CSV."
            )

    def __reduce__(self) -> tuple[Callable[[list[Table]], HistoryFiles], tuple[list[Table]]]:
        """Pickle the files' columns: another process reads the same files, a part in one thread."""
        return HistoryFiles._of_tables, (self._tables,)

    @classmethod
    def _of_tables(cls, tables: list[Table]) -> HistoryFiles:
        files = cls.__new__(cls)
        files._threads, files._tables, files.others, files.refused = 1, tables, [], []
        files._connection = open_duckdb(threads=1)
        return files

    @property
    def paths(self) -> list[Path]:
        """The files that hold readings."""
        return [table.path for table in self._tables]

    def read(
        self,
        *,
        since: date | None = None,
        until: date | None = None,
        today: date | None = None,
        part: SerialRange = WHOLE,
        keep: Keep | None = None,
    ) -> History:
        """Read rows dated in [since, until]. Raises UnreadableHistory if a file breaks off.

        Rows dated after `today` are left out and counted. `part` is one of `split_into_parts`. `keep` says which
        serial numbers to keep.
        """
        kept = [part.to_sql_condition()]
        if since is not None:
            kept.append(f"(day IS NULL OR day >= {(since - EPOCH).days})")
        if until is not None:
            # Rows from the future are read along to be counted.
            ahead = "" if today is None else f" OR day > {(today - EPOCH).days}"
            kept.append(f"(day IS NULL OR day <= {(until - EPOCH).days}{ahead})")
        rows = self._rows() if part.copies is None else part.copies.build_select_sql()
        query = (
            f"SELECT {', '.join(CANONICAL)} FROM ({rows}) WHERE {' AND '.join(kept)} "
            "ORDER BY serial, day, s9 NULLS FIRST, file, place"
        )
        with self._connection.cursor() as cursor:
            table = ask_duckdb(self.paths, lambda: cursor.sql(query).to_arrow_table())
            if part.copies is not None:
                broken = part.copies.broken
            else:
                broken = count_broken_lines(cursor, self.paths) if part.low is None else 0
        return history_of(
            table, today=None if today is None else (today - EPOCH).days, keep=keep, broken=broken
        )

    def find_defects(self, *, until: date | None = None, today: date | None = None) -> HistoryDefects:
        """Count the defects of the rows dated up to `until`: rows that `read` leaves out, and values that are no
        numbers.
        """
        high = date.max if until is None else until
        future = date.max if today is None else today
        query = (
            "SELECT count(*), count(*) FILTER (lost), count(*) FILTER (NOT lost AND undated), "
            f"count(*) FILTER (NOT lost AND NOT undated AND day > {(future - EPOCH).days}), sum(wordy) FROM ("
            f"SELECT day, wordy, coalesce(serial, '') = '' AS lost, coalesce(day, 0) < {FIRST_DAY} AS undated "
            f"FROM ({self._rows()}) "
            f"WHERE day IS NULL OR day <= {(high - EPOCH).days} OR day > {(future - EPOCH).days})"
        )
        with self._connection.cursor() as cursor:
            counted = ask_duckdb(self.paths, lambda: cursor.execute(query).fetchall())[0]
            broken = count_broken_lines(cursor, self.paths)
        rows, nameless, undated, ahead, wordy = (int(count or 0) for count in counted)
        return HistoryDefects(
            rows=rows, nameless=nameless, undated=undated, future=ahead, wordy=wordy, broken=broken
        )

    def model_of(self, serials: Iterable[str], *, until: date | None = None) -> list[str]:
        """Return the last reported model name of each serial number; "" if it has no row."""
        cut = "" if until is None else f" AND day <= {(until - EPOCH).days}"
        query = (
            f"SELECT serial, arg_max(model, day) FROM ({self._rows()}) "
            f"WHERE serial IS NOT NULL AND day IS NOT NULL{cut} GROUP BY serial"
        )
        with self._connection.cursor() as cursor:
            models = dict(ask_duckdb(self.paths, lambda: cursor.execute(query).fetchall()))
        return [str(models.get(serial) or "") for serial in serials]

    def read_models(self) -> dict[str, frozenset[str]]:
        """Return model name -> serial numbers of the drives that any row reports under it."""
        query = (
            f"SELECT coalesce(model, ''), list(DISTINCT serial) FROM ({self._rows()}) "
            "WHERE serial <> '' GROUP BY ALL"
        )
        with self._connection.cursor() as cursor:
            return {
                str(model): frozenset(map(str, serials))
                for model, serials in ask_duckdb(self.paths, lambda: cursor.execute(query).fetchall())
            }

    def split_into_parts(
        self, rows_per_part: int = ROWS_A_PART, copiers: Copiers | None = None
    ) -> list[SerialRange]:
        """Return parts of the drives in order, each of at most `rows_per_part` rows or one drive.

        Raises UnreadableHistory. `copiers` are the processes that will read the parts, and copy the rows before;
        None: this process does both, and may read few parts in place.
        """
        lows: list[str] = []
        with self._connection.cursor() as cursor:
            query = (
                f"SELECT serial, count(*) FROM ({self._rows()}) WHERE serial <> '' GROUP BY serial ORDER BY 1"
            )
            filled = 0
            counted = ask_duckdb(self.paths, lambda: cursor.execute(query))
            while batch := counted.fetchmany(10_000):
                for serial, rows in batch:
                    if not lows or filled + rows > rows_per_part:
                        lows.append(serial)
                        filled = 0
                    filled += rows
        bounds: list[str | None] = [None, *lows[1:], None]
        parts = [SerialRange(low, high) for low, high in pairwise(bounds)]
        few = len(parts) <= SCANS and all(is_parquet(path) for path in self.paths)
        in_place = len(parts) == 1 or (few and copiers is None)
        return parts if in_place else self._copy(parts, copiers)

    def _copy(self, parts: Sequence[SerialRange], copiers: Copiers | None) -> list[SerialRange]:
        """Copy the rows and return the parts with the copies of their rows. The copies go with this object."""
        folder = Path(tempfile.mkdtemp(prefix="predrain-rows-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        work = partial(
            copy_share,
            folder=folder,
            lows=[part.low for part in parts if part.low is not None],
            threads=self._threads if copiers is None else 1,
        )
        count = 1 if copiers is None else SHARES_A_WORKER * copiers.workers
        shares = cut_into_shares(self._connection, self._tables, count)
        broken = sum(map(work, shares) if copiers is None else copiers.map_parts(work, shares))
        return [
            replace(part, copies=RowCopies(folder, number, broken if part.low is None else 0))
            for number, part in enumerate(parts)
        ]

    def _rows(self) -> str:
        return " UNION ALL ".join(table.build_select_sql() for table in self._tables)
