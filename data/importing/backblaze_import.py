# ruff: noqa: S608 - columns cannot be bound as parameters; they are quoted, and paths by `data.history`
"""Backblaze's daily tables: a row is a reading, and `failure` = 1 is an outcome.

The rows are streamed, so memory does not grow with the file. A row's day is a day of UTC; its reading is dated at the
beginning of that day.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from predrain.data.history import UnreadableHistory, is_history, table_of
from predrain.data.history.history_tables import is_parquet, types_of
from predrain.data.ids import HostName
from predrain.data.importing.import_port import ImportPart, Item, UnusableItem, version_of
from predrain.data.importing.import_rows import SMART_COLUMN, NoReading, TableColumns
from predrain.data.outcome import DriveFate, Outcome

if TYPE_CHECKING:
    import duckdb

SOURCE = "backblaze"
ROWS_AT_ONCE = 2_000
_MEMORY = "256MB"


def list_backblaze_import_parts(paths: Sequence[Path], host: HostName) -> Iterator[ImportPart]:
    """Yield one part for each file."""
    for path in paths:
        yield ImportPart(str(path.resolve()), version_of(path, host), _Table(path, host).items)


# Backblaze wrote the day as 2018/1/1 on one day of 2018.
_WHO = {
    "taken_at": "TRY_CAST(replace(left(CAST(date AS VARCHAR), 10), '/', '-') AS DATE)",
    "serial": "trim(CAST(serial_number AS VARCHAR))",
    "model": "trim(CAST(model AS VARCHAR))",
}


class _Table:
    def __init__(self, path: Path, host: HostName) -> None:
        self._path, self._host = path, host

    def items(self, skip: int) -> Generator[Item]:
        """Yield one item for each row, then the drives that failed, then the broken lines. Raises UnreadableHistory."""
        import duckdb

        connection = duckdb.connect(config={"threads": 1, "memory_limit": _MEMORY})
        connection.execute("SET enable_progress_bar = false")  # after 2 s a progress bar would go to stdout
        try:
            columns = types_of(connection, self._path)
            if not is_history(columns):
                raise UnreadableHistory(
                    f"{self._path} holds no readings (columns date, serial_number, model); leave it out"
                )
            total = self._count(connection, columns) if skip else 0
            if skip <= total:
                yield from self._rows(connection, columns, skip)
            after = chain(self._ends(connection, columns), self._broken(connection))
            yield from islice(after, max(0, skip - total), None)
        except duckdb.Error as error:
            raise UnreadableHistory(
                f"{self._path} breaks off ({str(error).splitlines()[0]}); fetch it again and import it again"
            ) from None
        finally:
            connection.close()

    def _rows(
        self, connection: duckdb.DuckDBPyConnection, columns: Collection[str], skip: int
    ) -> Iterator[Item]:
        wanted = _WHO | {name: f'TRY_CAST("{name}" AS BIGINT)' for name in _list_numeric_columns(columns)}
        shape = TableColumns({name: place for place, name in enumerate(wanted)}, self._host)
        query = f"SELECT {', '.join(wanted.values())} FROM {table_of(self._path)} OFFSET {skip}"
        cursor, line = connection.execute(query), skip
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            for row in rows:
                line += 1
                try:
                    yield shape.parse_row(row)
                except NoReading as reason:
                    yield UnusableItem(f"{self._path} row {line}", str(reason))

    def _count(self, connection: duckdb.DuckDBPyConnection, columns: Collection[str]) -> int:
        """Return the number of rows that `_rows` gives: DuckDB sets a broken line aside only if its broken columns
        are read.
        """
        looked = ", ".join((*_WHO.values(), *(f'"{name}"' for name in _list_numeric_columns(columns))))
        query = f"SELECT count(*) FROM {table_of(self._path)} WHERE hash({looked}) IS NOT NULL"
        return int(connection.execute(query).fetchall()[0][0])

    def _ends(self, connection: duckdb.DuckDBPyConnection, columns: Collection[str]) -> Iterator[Item]:
        """Yield the drives that failed, each on its day."""
        if "failure" not in columns:
            return
        shape = TableColumns({name: place for place, name in enumerate(_WHO)}, self._host)
        query = f"SELECT {', '.join(_WHO.values())} FROM {table_of(self._path)} WHERE TRY_CAST(failure AS INTEGER) = 1"
        cursor = connection.execute(query)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            for row in rows:
                try:
                    last = shape.parse_row(row)
                except NoReading:
                    continue  # was reported as a row
                yield Outcome(last.device, last.taken_at, DriveFate.FAILED, SOURCE)

    def _broken(self, connection: duckdb.DuckDBPyConnection) -> Iterator[Item]:
        """Yield the lines of a CSV file that could not be parsed; they are known only at its end."""
        if is_parquet(self._path):
            return
        query = "SELECT DISTINCT line FROM reject_errors ORDER BY line"
        for (line,) in connection.execute(query).fetchall():
            yield UnusableItem(
                f"{self._path} line {line}",
                "the line cannot be taken apart as CSV: see its quotes and encoding",
            )


def _list_numeric_columns(columns: Collection[str]) -> list[str]:
    return [name for name in columns if name == "capacity_bytes" or SMART_COLUMN.fullmatch(name)]
