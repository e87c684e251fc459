# ruff: noqa: S608 - table functions, columns and days cannot be bound as parameters; paths are quoted
"""Drive histories: any mixture of Backblaze-shaped parquet and CSV files, as columns sorted by drive and day.

In: files with `date, serial_number, model` and any of `smart_N_raw` (daily rows, or change points where a row holds
until the drive's next). Out: `History`. Columns that a file lacks are null; a value that cannot be true is null and
counted; of several rows of a drive on one day the last wins (order of power-on hours, then of the files). `failure`
is read by `data.lifespan` for training, never here; `snapshot` is read by nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from data.refusal import Refusal

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

EPOCH = date(1970, 1, 1)
FIRST_DAY = (date(2000, 1, 1) - EPOCH).days
"""No row can be older: SMART histories begin later."""

LIMITS: Mapping[int, float] = {
    5: 2**32,
    9: 20 * 365.25 * 24,
    10: 2**32,
    12: 1e6,
    187: 2**32,
    188: 2**48,
    189: 2**32,
    193: 1e8,
    194: 2**48,
    196: 2**32,
    197: 2**32,
    198: 2**32,
    199: 2**32,
    241: 2**43,
    242: 2**43,
}
"""SMART attributes that are read, and the value at which each stops being believable (9: 20 years; 241, 242:
sectors)."""

WORD = 65536.0
HOTTEST = 150.0


class UnreadableHistory(Refusal):
    """A history file is missing, broken, or not Backblaze-shaped."""


@dataclass(frozen=True, slots=True)
class Told:
    """What was found wrong while reading, in rows (duplicates, dates) or values (negative, absurd)."""

    rows: int = 0
    duplicates: int = 0
    undated: int = 0
    future: int = 0
    negative: int = 0
    absurd: int = 0

    def __add__(self, other: Told) -> Told:
        return Told(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def sentences(self) -> list[str]:
        """One sentence for each thing found; empty when all was well."""
        says = (
            (self.duplicates, "repeated a drive's day; the last one counted"),
            (self.undated, "had no date that can be true and were left out"),
            (self.future, "were dated in the future and were left out"),
        )
        found = [f"{count:,} rows {what}" for count, what in says if count]
        for count, what in ((self.negative, "negative"), (self.absurd, "beyond belief")):
            if count:
                found.append(f"{count:,} values were {what} and count as not reported")
        return found


@dataclass(frozen=True, slots=True)
class History:
    """Rows of many drives, sorted by drive and day; one row a drive and day. Missing values are NaN."""

    serials: NDArray[np.object_]
    """(drives,) sorted."""
    start: NDArray[np.int64]
    """(drives + 1,) rows of drive d are start[d]:start[d + 1]."""
    day: NDArray[np.int32]
    """(rows,) days since 1970-01-01, UTC."""
    model: NDArray[np.int32]
    """(rows,) index into `model_names`."""
    model_names: tuple[str, ...]
    raw: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)
    """SMART id -> (rows,) decoded counts."""
    told: Told = field(default_factory=Told)

    @property
    def drives(self) -> int:
        """Number of drives."""
        return len(self.serials)

    @property
    def drive(self) -> NDArray[np.int32]:
        """(rows,) the drive of each row."""
        return np.repeat(np.arange(self.drives, dtype=np.int32), np.diff(self.start))


def believable(smart_id: int, raw: NDArray[np.float64]) -> tuple[NDArray[np.float64], int, int]:
    """Decode what vendors pack into one integer and drop what cannot be true.

    188 keeps its low 16-bit word (all timeouts; the upper words are subsets), 194 its low byte, and a temperature of
    0 means that there is no sensor. Returns the values, how many were negative and how many absurd.
    """
    negative = raw < 0
    absurd = raw > LIMITS[smart_id]
    value = np.where(negative | absurd, np.nan, raw)
    if smart_id == 188:
        value = np.mod(value, WORD)
    elif smart_id == 194:
        value = np.mod(value, 256.0)
        value = np.where((value == 0) | (value > HOTTEST), np.nan, value)
    return value, int(np.count_nonzero(negative)), int(np.count_nonzero(absurd))


def believable_one(smart_id: int, raw: float) -> float:
    """`believable` for a single value, without its counts: the stream's way through the same rule."""
    if not 0 <= raw <= LIMITS[smart_id]:
        return np.nan
    if smart_id == 188:
        return raw % WORD
    if smart_id == 194:
        celsius = raw % 256.0
        return np.nan if celsius == 0 or celsius > HOTTEST else celsius
    return raw


def columns_of(connection: duckdb.DuckDBPyConnection, path: Path) -> frozenset[str]:
    """Names of the columns of one file. Raises UnreadableHistory."""
    import duckdb

    if not path.is_file():
        raise UnreadableHistory(f"There is no file {path}; name an existing parquet or CSV file.")
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {table_of(path)}").fetchall()
    except duckdb.Error as error:
        first = str(error).splitlines()[0]
        raise UnreadableHistory(
            f"{path} cannot be read as parquet or CSV ({first}); check or replace it."
        ) from None
    return frozenset(str(row[0]) for row in rows)


def table_of(path: Path) -> str:
    """The SQL table function that reads this file; CSV columns come as text."""
    quoted = str(path).replace("'", "''")
    if path.suffix.lower() in (".parquet", ".pq"):
        return f"read_parquet('{quoted}', file_row_number = true)"
    return f"read_csv('{quoted}', all_varchar = true, header = true, null_padding = true, delim = ',')"


def day_sql(column: str) -> str:
    """SQL for days since 1970-01-01; accepts `2018-01-02`, `2018/1/1` and timestamps, NULL when it is no date."""
    text = f"CAST({column} AS VARCHAR)"
    return f"(TRY_CAST(replace(left({text}, 10), '/', '-') AS DATE) - DATE '1970-01-01')"


def is_history(columns: Collection[str]) -> bool:
    """Whether a file with these columns holds readings (a drives table does not)."""
    return {"date", "serial_number", "model"} <= set(columns)


class HistoryFiles:
    """A set of history files, to be read whole or drive by drive in parts."""

    def __init__(self, paths: Sequence[Path], *, threads: int = 2) -> None:
        """Look at the files' columns. Raises UnreadableHistory when one is missing or of another shape."""
        import duckdb

        self._connection = duckdb.connect(":memory:", config={"threads": threads})
        self.paths: list[Path] = []
        self.others: list[Path] = []
        self._columns: dict[Path, frozenset[str]] = {}
        for path in paths:
            columns = columns_of(self._connection, path)
            if is_history(columns):
                self.paths.append(path)
                self._columns[path] = columns
            elif {"serial_number", "last_date", "failure"} <= columns:
                self.others.append(path)
            else:
                raise UnreadableHistory(
                    f"{path} lacks date, serial_number or model; give Backblaze-shaped parquet or CSV."
                )
        if not self.paths:
            raise UnreadableHistory(
                "No history among the files; give at least one with date, serial_number, model."
            )

    def _select(
        self, number: int, path: Path, since: int | None, until: int | None, part: tuple[int, int]
    ) -> str:
        columns = self._columns[path]
        values = ", ".join(
            f"TRY_CAST(smart_{n}_raw AS DOUBLE) AS s{n}"
            if f"smart_{n}_raw" in columns
            else f"NULL::DOUBLE AS s{n}"
            for n in LIMITS
        )
        order = "file_row_number" if "file_row_number" in columns else "row_number() OVER ()"
        inner = (
            f"SELECT CAST(serial_number AS VARCHAR) AS serial, CAST(model AS VARCHAR) AS model, "
            f"{day_sql('date')} AS day, {values}, {number} AS file, {order} AS place FROM {table_of(path)}"
        )
        keep = ["serial IS NOT NULL"]
        if part[1] > 1:
            keep.append(f"hash(serial) % {part[1]} = {part[0]}")
        if since is not None:
            keep.append(f"(day IS NULL OR day >= {since})")
        if until is not None:
            keep.append(f"(day IS NULL OR day <= {until})")
        return f"SELECT * FROM ({inner}) WHERE {' AND '.join(keep)}"

    def rows(self) -> int:
        """Rows of all files, without reading them where the format tells."""
        union = " UNION ALL ".join(f"SELECT count(*) AS n FROM {table_of(path)}" for path in self.paths)
        row = self._connection.execute(f"SELECT sum(n) FROM ({union})").fetchall()
        return int(row[0][0] or 0)

    def read(
        self,
        *,
        since: date | None = None,
        until: date | None = None,
        today: date | None = None,
        part: tuple[int, int] = (0, 1),
        keep: Callable[[Sequence[str]], NDArray[np.bool_]] | None = None,
    ) -> History:
        """Read rows dated in [since, until].

        today: rows dated after it are future-dated and left out, counted. part: (i, n) reads the i-th of n parts of
        the drives, cut by a hash of the serial number. keep: of these serial numbers, which to keep.
        """
        low = None if since is None else (since - EPOCH).days
        high = None if until is None else (until - EPOCH).days
        union = " UNION ALL ".join(
            self._select(number, path, low, high, part) for number, path in enumerate(self.paths)
        )
        values = ", ".join(f"s{n}" for n in LIMITS)
        order = "serial, day, s9 NULLS FIRST, file, place"
        query = f"SELECT serial, model, day, {values} FROM ({union}) ORDER BY {order}"
        table = self._connection.sql(query).to_arrow_table()
        return _columnar(table, None if today is None else (today - EPOCH).days, keep)

    def model_of(self, serials: Iterable[str], *, until: date | None = None) -> list[str]:
        """The last model name each serial number was reported with; "" where it has no row."""
        cut = "" if until is None else f" AND day <= {(until - EPOCH).days}"
        union = " UNION ALL ".join(
            f"SELECT CAST(serial_number AS VARCHAR) AS serial, CAST(model AS VARCHAR) AS model, "
            f"{day_sql('date')} AS day FROM {table_of(path)}"
            for path in self.paths
        )
        rows = self._connection.execute(
            f"SELECT serial, arg_max(model, day) FROM ({union}) WHERE day IS NOT NULL{cut} GROUP BY serial"
        ).fetchall()
        models = dict(rows)
        return [str(models.get(serial) or "") for serial in serials]

    def parts(self, rows_a_part: int = 1_500_000) -> Iterator[tuple[int, int]]:
        """Parts of the drives, each of about `rows_a_part` rows."""
        count = max(1, -(-self.rows() // rows_a_part))
        return ((index, count) for index in range(count))


def _columnar(
    table: pa.Table, today: int | None, keep: Callable[[Sequence[str]], NDArray[np.bool_]] | None
) -> History:
    """Arrow rows, sorted, to a History: drop rows without a day and duplicates, then clean the values."""
    import pyarrow.compute as pc

    day_or_null = table["day"]
    day = np.asarray(pc.fill_null(day_or_null, FIRST_DAY - 1).to_numpy(), dtype=np.int64)
    undated = day < FIRST_DAY
    future = np.zeros(len(day), dtype=bool) if today is None else day > today
    encoded = table["serial"].combine_chunks().dictionary_encode()
    names: list[str] = encoded.dictionary.to_pylist()
    code = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    good = ~(undated | future)
    if keep is not None:
        good &= keep(names)[code] if names else good
    rows = np.flatnonzero(good)
    code, day = code[rows], day[rows]
    last = np.ones(len(rows), dtype=bool)
    last[:-1] = (code[1:] != code[:-1]) | (day[1:] != day[:-1])
    duplicates = len(rows) - int(np.count_nonzero(last))
    rows, code, day = rows[last], code[last], day[last]
    drives, start = np.unique(code, return_index=True)
    models = table["model"].combine_chunks().dictionary_encode()
    model = np.asarray(pc.fill_null(models.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int32)[rows]
    model_names = [str(name) for name in models.dictionary.to_pylist()]
    if (model < 0).any():
        model = np.where(model < 0, len(model_names), model).astype(np.int32)
        model_names.append("")
    raw: dict[int, NDArray[np.float64]] = {}
    negative = absurd = 0
    for smart_id in LIMITS:
        column = table[f"s{smart_id}"]
        if column.null_count == len(column):
            continue
        values = np.asarray(column.to_numpy(), dtype=np.float64)[rows]
        raw[smart_id], below, beyond = believable(smart_id, values)
        negative, absurd = negative + below, absurd + beyond
    return History(
        serials=np.array([names[c] for c in drives], dtype=object),
        start=np.append(start, len(rows)).astype(np.int64),
        day=day.astype(np.int32),
        model=model,
        model_names=tuple(model_names),
        raw=raw,
        told=Told(
            len(rows), duplicates, int(undated.sum()), int((future & ~undated).sum()), negative, absurd
        ),
    )
