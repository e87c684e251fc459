"""A forecast to be judged, with one row for each drive and landmark, as `predrain score` writes it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from predrain.data.refusal import Refusal
from predrain.models.evaluate.arrays import Floats, Ints, Texts
from predrain.models.evaluate.drive_outcomes import UnreadableTruth, to_epoch_days

PROBABILITIES = ("p_fail_7d", "p_fail_14d", "p_fail_30d")
LIFE = ("life_p10_days", "life_p50_days", "life_p90_days")
WORDS = ("model", "status", "source", "reason")


class UnreadableScores(Refusal):
    """A file of scores is missing, is no parquet or CSV, or lacks a column."""


class DuplicateScores(Refusal):
    """The file scores a drive twice on one day, so it is not clear which score to judge."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Rows in the file's order. Missing numbers are NaN."""

    serials: Texts
    day: Ints
    """Days since 1970-01-01."""
    numbers: dict[str, Floats]
    """The columns of PROBABILITIES and LIFE that the file has."""
    words: dict[str, Texts]
    """The columns of WORDS that the file has."""


def read_scores(path: Path) -> Scores:
    """Read parquet or CSV. Raises UnreadableScores, DuplicateScores."""
    try:
        if path.suffix.lower() == ".csv":
            options = pyarrow.csv.ConvertOptions(
                column_types={name: pa.string() for name in ("serial_number", "date", *WORDS)}
                | dict.fromkeys((*PROBABILITIES, *LIFE), pa.float64())
            )
            table = pyarrow.csv.read_csv(
                path, convert_options=options, parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True)
            )
        else:
            names = pq.read_schema(path).names
            known = {"serial_number", "date", *PROBABILITIES, *LIFE, *WORDS}
            table = pq.read_table(path, columns=[name for name in names if name in known])
    except (OSError, pa.ArrowException) as error:
        raise UnreadableScores(
            f"{path} cannot be read as parquet or CSV ({str(error).splitlines()[0]})."
        ) from None
    missing = [name for name in ("serial_number", "date", "p_fail_30d") if name not in table.column_names]
    if missing:
        raise UnreadableScores(f"{path} has no column {', '.join(missing)}; write it with `predrain score`.")
    try:
        day = to_epoch_days(table["date"])
    except UnreadableTruth as error:
        raise UnreadableScores(f"{path}: {error}") from None
    scores = Scores(
        _to_texts(table["serial_number"]),
        day,
        {name: _to_floats(table[name]) for name in (*PROBABILITIES, *LIFE) if name in table.column_names},
        {name: _to_texts(table[name]) for name in WORDS if name in table.column_names},
    )
    _refuse_duplicates(scores, path)
    return scores


def rank_only(scores: Scores) -> Scores:
    """Keep only the probability of failure within 30 days, which recall, PR-AUC and calibration at 30 days need."""
    return Scores(scores.serials, scores.day, {"p_fail_30d": scores.numbers["p_fail_30d"]}, {})


def landmarks_of(scores: Scores) -> Ints:
    """Return the landmark days of a file: its first day, then days at a constant step up to its last.

    The step is the commonest distance between its days (the longer one if two are equally common). So a day that is
    missing altogether is still expected, and a stray day is not.
    """
    distinct = np.unique(scores.day)
    if len(distinct) < 2:
        return distinct
    counted = Counter(np.diff(distinct).tolist())
    step = max(counted, key=lambda gap: (counted[gap], gap))
    return np.arange(distinct[0], distinct[-1] + 1, step, dtype=np.int64)


def _to_texts(column: pa.ChunkedArray) -> Texts:
    """Convert a column to texts. Equal texts are one object, because daily scores have millions of rows and few
    texts."""
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    known: Texts = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
    texts: Texts = known[encoded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)]
    return texts


def _to_floats(column: pa.ChunkedArray) -> Floats:
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _refuse_duplicates(scores: Scores, path: Path) -> None:
    _, serial = np.unique(scores.serials.astype(str), return_inverse=True)
    order = np.lexsort((scores.day, serial))
    twice = (np.diff(serial[order]) == 0) & (np.diff(scores.day[order]) == 0)
    if twice.any():
        at = order[int(np.argmax(twice))]
        day = np.datetime64(int(scores.day[at]), "D")
        raise DuplicateScores(
            f"{path} scores {scores.serials[at]} more than once on {day} ({int(twice.sum()):,} such rows); "
            "keep one row a drive and day."
        )
