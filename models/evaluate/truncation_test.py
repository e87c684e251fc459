"""The truncation test: a landmark scored from a history that ends on it must equal the full run.

A difference means that a forecast has used later days.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from predrain.models.evaluate.score_rows import Scores

TOLERANCE = 1e-9
"""Numbers may differ by the rounding of a CSV."""


@dataclass(frozen=True, slots=True)
class Truncation:
    """The result of the test. The runs are equal if `differences` is empty."""

    rows: int
    """Number of rows of the truncated run that were compared."""
    differences: tuple[str, ...]
    """One sentence for each difference."""


def compare_truncated_scores(full: Scores, truncated: Scores) -> Truncation:
    """Compare the drives, and the values of the common columns, on every day of the truncated run."""
    cut_days = np.unique(truncated.day)
    rows = np.flatnonzero(np.isin(full.day, cut_days))
    mine = {(str(full.serials[row]), int(full.day[row])): int(row) for row in rows}
    cut = {(str(serial), int(day)): place for place, (serial, day) in enumerate(
        zip(truncated.serials, truncated.day, strict=True))}  # fmt: skip
    found = [f"{_format_drive_day(key)}: only in the full run" for key in mine.keys() - cut.keys()]
    found += [f"{_format_drive_day(key)}: only in the truncated run" for key in cut.keys() - mine.keys()]
    both = sorted(mine.keys() & cut.keys())
    left, right = (
        np.array([mine[key] for key in both], dtype=int),
        np.array([cut[key] for key in both], dtype=int),
    )
    for column in full.numbers.keys() & truncated.numbers.keys():
        a, b = full.numbers[column][left], truncated.numbers[column][right]
        unequal = ~((np.abs(a - b) <= TOLERANCE * np.maximum(1.0, np.abs(a))) | (np.isnan(a) & np.isnan(b)))
        found += [
            f"{_format_drive_day(both[at])}: {column} is {a[at]:g}, truncated {b[at]:g}"
            for at in np.flatnonzero(unequal)
        ]
    for word in full.words.keys() & truncated.words.keys():
        said, then = full.words[word][left], truncated.words[word][right]
        unequal = np.array(
            [str(x or "") != str(y or "") for x, y in zip(said, then, strict=True)], dtype=bool
        )
        found += [
            f"{_format_drive_day(both[at])}: {word} is {said[at]!r}, truncated {then[at]!r}"
            for at in np.flatnonzero(unequal)
        ]
    return Truncation(len(cut), tuple(sorted(found)))


def _format_drive_day(key: tuple[str, int]) -> str:
    return f"{key[0]} on {np.datetime64(key[1], 'D')}"
