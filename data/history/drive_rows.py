"""The rows of many drives in memory, and the defects that were found while they were read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.history.smart_ranges import LIMITS, decode_plausible_values

if TYPE_CHECKING:
    import pyarrow as pa

EPOCH: Final = date(1970, 1, 1)
FIRST_DAY: Final = (date(2000, 1, 1) - EPOCH).days
"""Days since 1970-01-01. No row can be older: SMART histories begin later."""


@dataclass(frozen=True, slots=True)
class HistoryDefects:
    """Defects found while reading: in rows (`rows` to `broken`), in drives (`renamed`), in values (`negative` to
    `wordy`).
    """

    rows: int = 0
    duplicates: int = 0
    undated: int = 0
    future: int = 0
    nameless: int = 0
    broken: int = 0
    renamed: int = 0
    negative: int = 0
    absurd: int = 0
    wordy: int = 0

    def __add__(self, other: HistoryDefects) -> HistoryDefects:
        return HistoryDefects(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    @property
    def refused_rows(self) -> int:
        """Rows that were left out because they cannot be right.

        A repeated day is not counted: its last row was taken.
        """
        return self.undated + self.future + self.nameless + self.broken

    def sentences(self) -> list[str]:
        """Return one sentence for each defect found; empty if there was none."""
        says = (
            (self.duplicates, "rows", "repeated a drive's day; the last one counted"),
            (self.undated, "rows", "had no date that can be true and were left out"),
            (self.future, "rows", "were dated in the future and were left out"),
            (self.nameless, "rows", "had no serial number and were left out"),
            (self.broken, "lines", "could not be taken apart into columns and were left out"),
            (self.renamed, "drives", "changed their model; each row counts under its own"),
            (self.negative, "values", "were negative and count as not reported"),
            (self.absurd, "values", "were implausible and count as not reported"),
            (self.wordy, "values", "were not numbers and count as not reported"),
        )
        return [f"{count:,} {unit} {what}" for count, unit, what in says if count]


@dataclass(frozen=True, slots=True)
class History:
    """Rows of many drives, sorted by drive and day, one row for each drive and day. Missing values are NaN."""

    serials: NDArray[np.object_]
    """(drives,) serial numbers, sorted."""
    start: NDArray[np.int64]
    """(drives + 1,) rows of drive d are start[d]:start[d + 1]."""
    day: NDArray[np.int32]
    """(rows,) days since 1970-01-01, UTC."""
    model: NDArray[np.int32]
    """(rows,) index into `model_names`."""
    model_names: tuple[str, ...]
    raw: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)
    """SMART id -> (rows,) decoded counts."""
    told: HistoryDefects = field(default_factory=HistoryDefects)

    @property
    def drives(self) -> int:
        """Number of drives."""
        return len(self.serials)

    @property
    def drive(self) -> NDArray[np.int32]:
        """(rows,) the drive of each row."""
        return np.repeat(np.arange(self.drives, dtype=np.int32), np.diff(self.start))


Keep = Callable[[Sequence[str]], NDArray[np.bool_]]
"""A function that says which of these serial numbers to keep."""


def history_of(table: pa.Table, *, today: int | None, keep: Keep | None, broken: int) -> History:
    """Build a History from Arrow rows `serial, model, day, wordy, s5, ...` that are sorted by drive and day.

    Rows without a drive or a day and repeated days are dropped and counted, then the values are cleaned.
    """
    import pyarrow.compute as pc

    day = np.asarray(pc.fill_null(table["day"], FIRST_DAY - 1).to_numpy(), dtype=np.int64)
    encoded = pc.fill_null(table["serial"], "").combine_chunks().dictionary_encode()
    names: list[str] = encoded.dictionary.to_pylist()
    code = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    nameless = code == names.index("") if "" in names else np.zeros(len(code), dtype=bool)
    undated = ~nameless & (day < FIRST_DAY)
    future = np.zeros(len(day), dtype=bool) if today is None else ~nameless & (day > today)
    good = ~(nameless | undated | future)
    if keep is not None and names:
        good &= keep(names)[code]
    rows = np.flatnonzero(good)
    code, day = code[rows], day[rows]
    last = np.ones(len(rows), dtype=bool)
    last[:-1] = (code[1:] != code[:-1]) | (day[1:] != day[:-1])
    duplicates = len(rows) - int(np.count_nonzero(last))
    rows, code, day = rows[last], code[last], day[last]
    drives, start = np.unique(code, return_index=True)
    model, model_names, renamed = _assign_row_models(table, rows, code)
    raw: dict[int, NDArray[np.float64]] = {}
    negative = absurd = 0
    for smart_id in LIMITS:
        column = table[f"s{smart_id}"]
        if column.null_count == len(column):
            continue
        values = np.asarray(column.to_numpy(), dtype=np.float64)[rows]
        raw[smart_id], below, beyond = decode_plausible_values(smart_id, values)
        negative, absurd = negative + below, absurd + beyond
    return History(
        serials=np.array([names[c] for c in drives], dtype=object),
        start=np.append(start, len(rows)).astype(np.int64),
        day=day.astype(np.int32),
        model=model,
        model_names=model_names,
        raw=raw,
        told=HistoryDefects(
            rows=len(rows),
            duplicates=duplicates,
            undated=int(undated.sum()),
            future=int(future.sum()),
            nameless=int(nameless.sum()),
            broken=broken,
            renamed=renamed,
            negative=negative,
            absurd=absurd,
            wordy=int(np.asarray(table["wordy"].to_numpy())[rows].sum()),
        ),
    )


def _assign_row_models(
    table: pa.Table, rows: NDArray[np.int64], code: NDArray[np.int64]
) -> tuple[NDArray[np.int32], tuple[str, ...], int]:
    """Return the model index of each row, the model names, and the number of drives with several models.

    A row without a model has its drive's last one.
    """
    import pyarrow.compute as pc

    encoded = table["model"].combine_chunks().dictionary_encode()
    names = [str(name) for name in encoded.dictionary.to_pylist()]
    model = np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int32)[rows]
    if (model < 0).any():
        begin = np.searchsorted(code, code)
        known = np.maximum.accumulate(np.where(model >= 0, np.arange(len(model)), -1))
        model = np.where(known >= begin, model[np.maximum(known, 0)], len(names)).astype(np.int32)
    named = model[:-1] < len(names)
    other = np.flatnonzero(named & (code[1:] == code[:-1]) & (model[1:] != model[:-1]))
    if (model == len(names)).any():
        names.append("")
    return model, tuple(names), len(np.unique(code[other]))
