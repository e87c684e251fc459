# ruff: noqa: S608 - serial numbers and days are quoted or numbers; paths are quoted by `data.history.history_tables`
"""A set of history files, read whole or a part of the drives at a time, in memory that does not grow with the files.

A part is a range of serial numbers that holds about as many rows as asked for, so the results of the parts are in the
order of the drives. If every file would have to be read many times, the rows are first copied to scratch files, one
for each part.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from predrain.data.history.drive_rows import EPOCH, FIRST_DAY, History, HistoryDefects, Keep, history_of
from predrain.data.history.history_tables import (
    CANONICAL,
    Table,
    UnreadableHistory,
    build_unreadable_error,
    is_history,
    is_parquet,
    types_of,
)

if TYPE_CHECKING:
    import duckdb

Answer = TypeVar("Answer")

ROWS_A_PART: Final = 750_000
SCANS: Final = 8
"""Number of parts up to which a parquet file is read again for each part: a copy of the rows costs as much as so many
reads."""
COPYING: Final = "1GB"
"""Memory for copying rows; the rest goes to the scratch folder."""


@dataclass(frozen=True, slots=True)
class SerialRange:
    """The drives with serial numbers in [low, high); None: no bound."""

    low: str | None = None
    high: str | None = None

    def to_sql_condition(self) -> str:
        """Return the range as SQL.

        Rows without a serial number belong to the first part, so that they are counted once.
        """
        low = "true" if self.low is None else f"serial >= {_quote_sql_text(self.low)}"
        high = "true" if self.high is None else f"serial < {_quote_sql_text(self.high)}"
        return f"({low} AND {high})" if self.low is not None else f"(serial IS NULL OR {high})"


WHOLE: Final = SerialRange()


class HistoryFiles:
    """Files of readings (`paths`), and drives tables that came with them (`others`)."""

    def __init__(self, paths: Sequence[Path], *, threads: int = 2, forgiving: bool = False) -> None:
        """Read the files' columns. Raises UnreadableHistory when a file is missing or of another shape.

        With `forgiving`, such files are left out as long as one can be read; `refused` gives the reason for each.
        """
        import duckdb

        self._connection = duckdb.connect(":memory:", config={"threads": threads})
        self._connection.execute("SET enable_progress_bar = false")
        self._tables: list[Table] = []
        self.others: list[Path] = []
        self.refused: list[str] = []
        self._copies: dict[SerialRange, str] = {}
        self._broken = 0
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

    def __reduce__(self) -> tuple[type[HistoryFiles], tuple[list[Path]]]:
        """Pickle the paths only: another process opens the same files again, and copies stay in this process."""
        return HistoryFiles, (self.paths,)

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
        rows = self._copies.get(part) or self._rows()
        query = (
            f"SELECT {', '.join(CANONICAL)} FROM ({rows}) WHERE {' AND '.join(kept)} "
            "ORDER BY serial, day, s9 NULLS FIRST, file, place"
        )
        with self._connection.cursor() as cursor:
            table = self._asked(lambda: cursor.sql(query).to_arrow_table())
            broken = self._rejected(cursor) if part not in self._copies else self._broken
        if part.low is not None:
            broken = 0
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
            counted = self._asked(lambda: cursor.execute(query).fetchall())[0]
            broken = self._rejected(cursor)
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
            models = dict(self._asked(lambda: cursor.execute(query).fetchall()))
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
                for model, serials in self._asked(lambda: cursor.execute(query).fetchall())
            }

    def split_into_parts(
        self, rows_per_part: int = ROWS_A_PART, *, in_place: bool = False
    ) -> list[SerialRange]:
        """Return parts of the drives in order, each of at most `rows_per_part` rows or one drive.

        With `in_place` the rows are never copied, since the parts will be read where the scratch folder is not
        available.
        """
        lows: list[str] = []
        with self._connection.cursor() as cursor:
            query = (
                f"SELECT serial, count(*) FROM ({self._rows()}) WHERE serial <> '' GROUP BY serial ORDER BY 1"
            )
            filled = 0
            counted = self._asked(lambda: cursor.execute(query))
            while batch := counted.fetchmany(10_000):
                for serial, rows in batch:
                    if not lows or filled + rows > rows_per_part:
                        lows.append(serial)
                        filled = 0
                    filled += rows
        bounds: list[str | None] = [None, *lows[1:], None]
        parts = [SerialRange(low, high) for low, high in pairwise(bounds)]
        dear = len(parts) > SCANS or not all(is_parquet(path) for path in self.paths)
        if len(parts) > 1 and dear and not in_place:
            self._copy(parts)
        return parts

    def _copy(self, parts: Sequence[SerialRange]) -> None:
        folder = tempfile.mkdtemp(prefix="predrain-rows-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        copying = (
            f"COPY (SELECT *, {_build_part_number_sql(parts)} AS part FROM ({self._rows()})) TO "
            f"{_quote_sql_text(folder)} "
            "(FORMAT parquet, PARTITION_BY (part), COMPRESSION lz4)"
        )
        with self._connection.cursor() as cursor:
            cursor.execute(f"SET temp_directory = {_quote_sql_text(folder)}")
            cursor.execute(f"SET memory_limit = '{COPYING}'")
            self._asked(lambda: cursor.execute(copying))
            cursor.execute("RESET memory_limit")
            self._broken = self._rejected(cursor)
        for index, part in enumerate(parts):
            source = _quote_sql_text(f"{folder}/part={index}/*.parquet")
            self._copies[part] = f"SELECT * FROM read_parquet({source}, hive_partitioning = false)"

    def _rows(self) -> str:
        return " UNION ALL ".join(table.build_select_sql() for table in self._tables)

    def _rejected(self, cursor: duckdb.DuckDBPyConnection) -> int:
        """Return the number of CSV lines that the cursor's last query could not parse."""
        if all(is_parquet(path) for path in self.paths):
            return 0
        query = "SELECT count(*) FROM (SELECT DISTINCT scan_id, file_id, line FROM reject_errors)"
        return int(cursor.execute(query).fetchall()[0][0])

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        """Return DuckDB's answer. Raises UnreadableHistory, with the file that breaks off if DuckDB names it."""
        import duckdb

        try:
            return ask()
        except duckdb.OutOfMemoryException as error:
            raise UnreadableHistory(
                f"The rows fit neither memory nor the scratch folder ({str(error).splitlines()[0]}); "
                "free space, or name another folder by TMPDIR."
            ) from None
        except duckdb.Error as error:
            named = [path for path in self.paths if str(path) in str(error)]
            raise build_unreadable_error(named[0] if named else self.paths[0].parent, error) from None


def _build_part_number_sql(parts: Sequence[SerialRange], first: int = 0) -> str:
    """Return SQL for the number of a row's part, by bisection; rows without a serial number go to the first part."""
    if len(parts) == 1:
        return str(first)
    middle = len(parts) // 2
    low = parts[middle].low or ""
    upper, lower = (
        _build_part_number_sql(parts[middle:], first + middle),
        _build_part_number_sql(parts[:middle], first),
    )
    return f"CASE WHEN serial >= {_quote_sql_text(low)} THEN {upper} ELSE {lower} END"


def _quote_sql_text(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
