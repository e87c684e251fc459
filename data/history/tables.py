# ruff: noqa: S608 - table functions, columns and days cannot be bound as parameters; paths are quoted
"""One history file as SQL: its columns, and a SELECT that gives every file the same ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from predrain.data.history.values import LIMITS
from predrain.data.refusal import Refusal

if TYPE_CHECKING:
    import duckdb

CANONICAL: Final = ("serial", "model", "day", "wordy", *(f"s{n}" for n in LIMITS))
"""Columns of every `select_of`, before `file` and `place`, by which rows of one day are ordered."""
NUMBERS: Final = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN"),
    '"NULL"',
)
TEXTS: Final = ("VARCHAR", "ENUM")


class UnreadableHistory(Refusal):
    """A history file is missing, broken, or not Backblaze-shaped."""


def columns_of(connection: duckdb.DuckDBPyConnection, path: Path) -> frozenset[str]:
    """Names of the columns of one file. Raises UnreadableHistory."""
    return frozenset(types_of(connection, path))


def types_of(connection: duckdb.DuckDBPyConnection, path: Path) -> Mapping[str, str]:
    """Column name -> DuckDB's name of its type. Raises UnreadableHistory."""
    import duckdb

    if not path.is_file():
        raise UnreadableHistory(f"There is no file {path}; name an existing parquet or CSV file.")
    if not path.stat().st_size:
        raise UnreadableHistory(f"{path} is empty; leave it out or fetch it again.")
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {table_of(path)}").fetchall()
    except duckdb.Error as error:
        raise unreadable(path, error) from None
    return {str(row[0]): str(row[1]) for row in rows}


def unreadable(path: Path, error: Exception) -> UnreadableHistory:
    """What is said of a file that DuckDB cannot read."""
    first = str(error).splitlines()[0]
    return UnreadableHistory(f"{path} cannot be read as parquet or CSV ({first}); check or replace it.")


def is_parquet(path: Path) -> bool:
    """By the file's ending; anything else is CSV."""
    return path.suffix.lower() in (".parquet", ".pq")


def table_of(path: Path) -> str:
    """The SQL table function that reads this file; CSV columns come as text, lines that are none are set aside."""
    quoted = str(path).replace("'", "''")
    if is_parquet(path):
        return f"read_parquet('{quoted}', file_row_number = true)"
    return (
        f"read_csv('{quoted}', all_varchar = true, header = true, null_padding = true, delim = ',', "
        "ignore_errors = true, store_rejects = true)"
    )


def day_sql(column: str) -> str:
    """SQL for days since 1970-01-01; accepts `2018-01-02`, `2018/1/1` and timestamps, NULL when it is no date."""
    text = f"CAST({column} AS VARCHAR)"
    return f"(TRY_CAST(replace(left({text}, 10), '/', '-') AS DATE) - DATE '1970-01-01')"


def is_history(columns: Collection[str]) -> bool:
    """Whether a file with these columns holds readings (a drives table does not)."""
    return {"date", "serial_number", "model"} <= set(columns)


@dataclass(frozen=True, slots=True)
class Table:
    """A file of readings."""

    path: Path
    number: int
    """Its place among the files: of two rows of one day the later file's counts."""
    types: Mapping[str, str]

    def __post_init__(self) -> None:
        """Raises UnreadableHistory when a column is kept as something that it cannot be."""
        for name, kind in self.types.items():
            wanted = None
            if name == "date" and not _is(kind, "DATE", "TIMESTAMP", *TEXTS):
                wanted = "days such as 2018-01-31"
            elif name in ("serial_number", "model") and not _is(kind, *TEXTS, *NUMBERS):
                wanted = "text"
            elif name in _RAW and not _is(kind, *TEXTS, *NUMBERS):
                wanted = "numbers"
            if wanted is not None:
                raise UnreadableHistory(f"{self.path} keeps {name} as {kind}; give {wanted}.")

    def select(self) -> str:
        """Every row, in the columns that all files have in common."""
        values, wordy = [], ["0"]
        for n in LIMITS:
            kind = self.types.get(f"smart_{n}_raw")
            if kind is None:
                values.append(f"NULL::DOUBLE AS s{n}")
            elif _is(kind, *TEXTS):
                text = f"nullif(trim(CAST(smart_{n}_raw AS VARCHAR)), '')"
                values.append(f"TRY_CAST({text} AS DOUBLE) AS s{n}")
                wordy.append(f"CAST({text} IS NOT NULL AND TRY_CAST({text} AS DOUBLE) IS NULL AS INTEGER)")
            else:
                values.append(f"TRY_CAST(smart_{n}_raw AS DOUBLE) AS s{n}")
        days = "(date - DATE '1970-01-01')" if self.types["date"] == "DATE" else day_sql("date")
        place = "file_row_number" if is_parquet(self.path) else "row_number() OVER ()"
        return (
            f"SELECT {self._text('serial_number')} AS serial, {self._text('model')} AS model, {days} AS day, "
            f"{' + '.join(wordy)} AS wordy, {', '.join(values)}, {self.number} AS file, {place} AS place "
            f"FROM {table_of(self.path)}"
        )

    def _text(self, column: str) -> str:
        # Parquet's own text stays as it is: a range of it skips whole row groups.
        plain = is_parquet(self.path) and self.types[column] == "VARCHAR"
        return column if plain else f"trim(CAST({column} AS VARCHAR))"


_RAW: Final = frozenset(f"smart_{n}_raw" for n in LIMITS)


def _is(kind: str, *kinds: str) -> bool:
    return kind.removeprefix("U").startswith(kinds) and not kind.endswith("]")
