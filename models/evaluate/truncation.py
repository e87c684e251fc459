"""The truncation test: a landmark scored from a history cut at it must equal the full run.

A difference means that a forecast has looked at later days.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from predrain.models.evaluate.scores import Scores

TOLERANCE = 1e-9
"""Numbers may differ by what a CSV's rounding takes from them."""


@dataclass(frozen=True, slots=True)
class Truncation:
    """Equal when `differences` is empty."""

    rows: int
    """Rows of the truncated run that were compared."""
    differences: tuple[str, ...]
    """One sentence each."""


def compare(full: Scores, truncated: Scores) -> Truncation:
    """On every day of the truncated run: the same drives, and the same value in every column that both
    have.
    """
    cut_days = np.unique(truncated.day)
    rows = np.flatnonzero(np.isin(full.day, cut_days))
    mine = {(str(full.serials[row]), int(full.day[row])): int(row) for row in rows}
    cut = {(str(serial), int(day)): place for place, (serial, day) in enumerate(
        zip(truncated.serials, truncated.day, strict=True))}  # fmt: skip
    found = [f"{_name(key)}: only in the full run" for key in mine.keys() - cut.keys()]
    found += [f"{_name(key)}: only in the truncated run" for key in cut.keys() - mine.keys()]
    both = sorted(mine.keys() & cut.keys())
    left, right = (
        np.array([mine[key] for key in both], dtype=int),
        np.array([cut[key] for key in both], dtype=int),
    )
    for column in full.numbers.keys() & truncated.numbers.keys():
        a, b = full.numbers[column][left], truncated.numbers[column][right]
        unequal = ~((np.abs(a - b) <= TOLERANCE * np.maximum(1.0, np.abs(a))) | (np.isnan(a) & np.isnan(b)))
        found += [
            f"{_name(both[at])}: {column} is {a[at]:g}, truncated {b[at]:g}" for at in np.flatnonzero(unequal)
        ]
    for word in full.words.keys() & truncated.words.keys():
        said, then = full.words[word][left], truncated.words[word][right]
        unequal = np.array(
            [str(x or "") != str(y or "") for x, y in zip(said, then, strict=True)], dtype=bool
        )
        found += [
            f"{_name(both[at])}: {word} is {said[at]!r}, truncated {then[at]!r}"
            for at in np.flatnonzero(unequal)
        ]
    return Truncation(len(cut), tuple(sorted(found)))


def _name(key: tuple[str, int]) -> str:
    return f"{key[0]} on {np.datetime64(key[1], 'D')}"
