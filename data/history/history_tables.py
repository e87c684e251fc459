# ruff: noqa: S608 - table functions, columns and days cannot be bound as parameters; paths are quoted
"""One history file as SQL: its columns, and a SELECT that gives every file the same columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from predrain.data.history.smart_ranges import LIMITS
from predrain.data.refusal import Refusal

if TYPE_CHECKING:
    import duckdb

Answer = TypeVar("Answer")

CANONICAL: Final = ("serial", "model", "day", "wordy", *(f"s{n}" for n in LIMITS))
"""Columns of every `build_select_sql`, before `file` and `place`, which order the rows of one day."""
NUMBERS: Final = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN"),
    '"NULL"',
)
TEXTS: Final = ("VARCHAR", "ENUM")
ARCHIVED: Final = ".hourly.parquet"
"""The ending of a file of the archive (`data.history.archive_reading`), which has many rows of a drive's day."""
PARTITION: Final = "day="
"""The beginning of the name of an archive's folder; the day follows."""
NAMED_AT_MOST: Final = 3
"""Files that are named one by one."""
_PARQUET: Final = (".parquet", ".pq")
_CSV: Final = (".csv", ".csv.gz")


class UnreadableHistory(Refusal):
    """A history file is missing, broken, or not Backblaze-shaped."""


def columns_of(connection: duckdb.DuckDBPyConnection, path: Path) -> frozenset[str]:
    """Return the names of the columns of one file. Raises UnreadableHistory."""
    return frozenset(types_of(connection, path))


def types_of(connection: duckdb.DuckDBPyConnection, path: Path) -> Mapping[str, str]:
    """Return column name -> DuckDB's name of its type. Raises UnreadableHistory."""
    import duckdb

    if not path.is_file():
        raise UnreadableHistory(f"There is no file {path}; name an existing parquet or CSV file.")
    if not path.stat().st_size:
        raise UnreadableHistory(f"{path} is empty; leave it out or fetch it again.")
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {table_of(path)}").fetchall()
    except duckdb.Error as error:
        raise build_unreadable_error(path, error) from None
    return {str(row[0]): str(row[1]) for row in rows}


def build_unreadable_error(path: Path, error: Exception) -> UnreadableHistory:
    """Build the error for a file that DuckDB cannot read."""
    first = str(error).splitlines()[0]
    return UnreadableHistory(f"{path} cannot be read as parquet or CSV ({first}); check or replace it.")


def open_duckdb(**settings: str | int) -> duckdb.DuckDBPyConnection:
    """Open a database in memory that prints nothing."""
    import duckdb

    connection = duckdb.connect(":memory:", config={**settings})
    connection.execute("SET enable_progress_bar = false")  # after 2 s a progress bar would go to stdout
    return connection


def ask_duckdb(paths: Sequence[Path], ask: Callable[[], Answer]) -> Answer:
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
        named = [path for path in paths if str(path) in str(error)]
        raise build_unreadable_error(named[0] if named else paths[0].parent, error) from None


def quote_sql_text(text: str) -> str:
    """Return the text as an SQL literal."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def is_parquet(path: Path) -> bool:
    """Return whether the file's ending is that of parquet; any other file is CSV."""
    return path.suffix.lower() in _PARQUET


def list_history_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files that are named, and for a folder the parquet and CSV files below it, sorted by name.

    Hidden files and folders are left out: an archive hides a day that it is about to remove.

    Raises UnreadableHistory if a folder has none.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        below = sorted(
            file
            for file in path.rglob("*")
            if file.name.lower().endswith((*_PARQUET, *_CSV))
            and not any(part.startswith(".") for part in file.relative_to(path).parts)
        )
        if not below:
            raise UnreadableHistory(
                f"There is no parquet or CSV file below {path}; name a folder or file with one."
            )
        found += below
    return found


def describe_files(paths: Sequence[Path]) -> str:
    """Return a name for files of one history, for people. Files of an archive are named by their days."""
    days = sorted({path.parent.name.removeprefix(PARTITION) for path in paths if is_archived(path)})
    others = [path.stem for path in paths if not is_archived(path)]
    archive = (
        [f"archive of {days[0]}" if len(days) == 1 else f"archive of {days[0]} to {days[-1]}"] if days else []
    )
    more = len(others) - NAMED_AT_MOST
    named = [*archive, *(others if more <= 0 else [*others[:NAMED_AT_MOST], f"{more:,} more"])]
    return ", ".join(named)


def is_archived(path: Path) -> bool:
    """Return whether the file is one of the archive: of its rows only those with `daily` are a history."""
    return path.name.lower().endswith(ARCHIVED)


def table_of(path: Path) -> str:
    """Return SQL for the daily rows of this file. CSV columns come as text; broken lines are set aside."""
    quoted = quote_sql_text(str(path))
    if is_archived(path):
        return f"(SELECT * FROM read_parquet({quoted}, file_row_number = true, hive_partitioning = false) WHERE daily)"
    if is_parquet(path):
        return f"read_parquet({quoted}, file_row_number = true)"
    return (
        f"read_csv({quoted}, all_varchar = true, header = true, null_padding = true, delim = ',', "
        "ignore_errors = true, store_rejects = true)"
    )


def day_sql(column: str) -> str:
    """Return SQL for days since 1970-01-01 from `2018-01-02`, `2018/1/1` or a timestamp; NULL if it is no date."""
    text = f"CAST({column} AS VARCHAR)"
    return f"(TRY_CAST(replace(left({text}, 10), '/', '-') AS DATE) - DATE '1970-01-01')"


def is_history(columns: Collection[str]) -> bool:
    """Return whether a file with these columns holds readings (a drives table does not)."""
    return {"date", "serial_number", "model"} <= set(columns)


@dataclass(frozen=True, slots=True)
class Table:
    """A file of readings."""

    path: Path
    number: int
    """The file's position: if two rows are of the same day, that of the later file counts."""
    types: Mapping[str, str]

    def __post_init__(self) -> None:
        """Raises UnreadableHistory if a column has a type that it cannot have."""
        for name, kind in self.types.items():
            wanted = None
            if name == "date" and not _is_sql_type(kind, "DATE", "TIMESTAMP", *TEXTS):
                wanted = "days such as 2018-01-31"
            elif name in ("serial_number", "model") and not _is_sql_type(kind, *TEXTS, *NUMBERS):
                wanted = "text"
            elif name in _RAW and not _is_sql_type(kind, *TEXTS, *NUMBERS):
                wanted = "numbers"
            if wanted is not None:
                raise UnreadableHistory(f"{self.path} keeps {name} as {kind}; give {wanted}.")

    def build_select_sql(self, rows: tuple[int, int] | None = None) -> str:
        """Return SQL for every row, in the columns that all files have in common.

        With `rows`, the rows [first, end) of a parquet file; its other row groups are not read.
        """
        values, wordy = [], ["0"]
        for n in LIMITS:
            kind = self.types.get(f"smart_{n}_raw")
            if kind is None:
                values.append(f"NULL::DOUBLE AS s{n}")
            elif _is_sql_type(kind, *TEXTS):
                text = f"nullif(trim(CAST(smart_{n}_raw AS VARCHAR)), '')"
                values.append(f"TRY_CAST({text} AS DOUBLE) AS s{n}")
                wordy.append(f"CAST({text} IS NOT NULL AND TRY_CAST({text} AS DOUBLE) IS NULL AS INTEGER)")
            else:
                values.append(f"TRY_CAST(smart_{n}_raw AS DOUBLE) AS s{n}")
        days = "(date - DATE '1970-01-01')" if self.types["date"] == "DATE" else day_sql("date")
        cut = "" if rows is None else f" WHERE file_row_number BETWEEN {rows[0]} AND {rows[1] - 1}"
        place = "file_row_number" if is_parquet(self.path) else "row_number() OVER ()"
        return (
            f"SELECT {self._text('serial_number')} AS serial, {self._text('model')} AS model, {days} AS day, "
            f"{' + '.join(wordy)} AS wordy, {', '.join(values)}, {self.number} AS file, {place} AS place "
            f"FROM {table_of(self.path)}{cut}"
        )

    def _text(self, column: str) -> str:
        # A text column of parquet stays as it is: a range of it skips whole row groups.
        plain = is_parquet(self.path) and self.types[column] == "VARCHAR"
        return column if plain else f"trim(CAST({column} AS VARCHAR))"


_RAW: Final = frozenset(f"smart_{n}_raw" for n in LIMITS)


def _is_sql_type(kind: str, *kinds: str) -> bool:
    return kind.removeprefix("U").startswith(kinds) and not kind.endswith("]")
