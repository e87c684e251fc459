"""Measures of a ranking: PR-AUC on rows, and recall of failures at a rate of false alarms on healthy windows.

Everything is sorted once. A bootstrap resample is a weight for each drive (how often it was drawn), so thresholds
and curves can be recomputed under new weights without sorting again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from predrain.models.evaluate.arrays import Bools, Floats, Ints

RATES = (0.001, 0.01)
"""Shares of healthy windows that may be flagged: the two operating points."""
_TOP = 4 * max(RATES)


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A threshold: every score above it is flagged, and the share `tied` of the scores equal to it."""

    threshold: float
    tied: float

    def flag_scores(self, score: Floats) -> Floats:
        """Return 1 above the threshold, `tied` on it, 0 below: (n,)."""
        return np.where(score > self.threshold, 1.0, np.where(score == self.threshold, self.tied, 0.0))


class RowCurve:
    """Precision and recall over rows, sorted by falling score and cut at the ends of tied groups that hold
    positives."""

    def __init__(self, score: Floats, label: Ints, drive: Ints) -> None:
        """Sort the rows. score, label (0 or 1), drive: (rows,)."""
        order = np.argsort(-score, kind="stable")
        score, label, drive = score[order], label[order], drive[order]
        ends = (
            np.append(np.flatnonzero(score[1:] != score[:-1]), len(score) - 1) + 1
            if len(score)
            else np.empty(0, int)
        )
        positive = np.flatnonzero(label == 1)
        group = np.searchsorted(ends, positive, side="right")
        cuts = np.unique(ends[group]) if len(positive) else np.empty(0, int)
        self._drive = drive[: cuts[-1]] if len(cuts) else drive[:0]
        self._starts = np.append(0, cuts[:-1]) if len(cuts) else np.empty(0, int)
        self._positive_drive = drive[positive]
        self._positive_cut = np.searchsorted(cuts, positive, side="right")

    def average_precision(self, weight: Ints) -> float:
        """Sum (recall gained) x (precision so far) over tied groups, as scikit-learn does; NaN without positives.

        weight: (drives,) how often each drive counts.
        """
        if not len(self._starts):
            return float("nan")
        gained = np.bincount(self._positive_cut, weight[self._positive_drive], minlength=len(self._starts))
        taken = np.cumsum(np.add.reduceat(weight[self._drive], self._starts, dtype=np.int64))
        if gained.sum() == 0:
            return float("nan")
        precision = np.cumsum(gained) / np.maximum(taken, 1)
        return float((gained * precision).sum() / gained.sum())


def compute_average_precision(positive: Bools, score: Floats, weight: Floats) -> float:
    """Sum (recall gained) x (precision so far) over scores that are tied; NaN without positives.

    positive, score, weight: (rows,). The definition is that of scikit-learn's `average_precision_score`.
    """
    order = np.argsort(-score, kind="stable")
    last_of_tie = np.append(np.flatnonzero(np.diff(score[order])), len(score) - 1)
    hits = np.cumsum(np.where(positive, weight, 0.0)[order])[last_of_tie]
    if not len(hits) or hits[-1] == 0:
        return float("nan")
    flagged = np.cumsum(weight[order])[last_of_tie]
    return float(
        (np.diff(hits, prepend=0.0) * hits / np.maximum(flagged, np.finfo(float).tiny)).sum() / hits[-1]
    )


class HealthyCurve:
    """Healthy windows (or rows) by falling score: gives the threshold at which a certain share of them is flagged."""

    def __init__(self, score: Floats, drive: Ints, drives: int) -> None:
        """Sort the windows. score, drive: (windows,)."""
        order = np.argsort(-score, kind="stable")
        self._score, self._drive = score[order], drive[order]
        self._per_drive = np.bincount(drive, minlength=drives)
        self._negated = -self._score
        place = min(int(len(score) * _TOP) + 1, len(score) - 1)
        self._top = (
            int(np.searchsorted(self._negated, self._negated[place], side="right")) if len(score) else 0
        )

    def find_operating_points(self, rates: tuple[float, ...], weight: Ints) -> list[OperatingPoint]:
        """Find the threshold for each rate. Ties on it are shared out linearly, so a constant score catches `rate`.

        Without any window nothing can be flagged, and the threshold is infinite.
        """
        if not len(self._score):
            return [OperatingPoint(float("inf"), 0.0) for _ in rates]
        total = int(self._per_drive @ weight)
        points = self._within(self._top, rates, weight, total)
        return points or self._within(len(self._score), rates, weight, total)

    def _within(self, top: int, rates: tuple[float, ...], weight: Ints, total: int) -> list[OperatingPoint]:
        score = self._score[:top]
        ends = np.append(np.flatnonzero(score[1:] != score[:-1]), top - 1)
        flagged = np.cumsum(weight[self._drive[:top]], dtype=np.int64)[ends]
        found = []
        for rate in rates:
            allowed = rate * total
            group = int(np.searchsorted(flagged, allowed, side="right"))
            if group == len(ends):
                if top < len(self._score):
                    return []
                return [OperatingPoint(-np.inf, 1.0) for _ in rates]
            above = int(flagged[group - 1]) if group else 0
            found.append(
                OperatingPoint(float(score[ends[group]]), (allowed - above) / (int(flagged[group]) - above))
            )
        return found

    def share_caught(self, point: OperatingPoint, weight: Ints) -> float:
        """Return the share of these windows (or rows) that an operating point flags."""
        above = int(np.searchsorted(self._negated, -point.threshold, side="left"))
        upto = int(np.searchsorted(self._negated, -point.threshold, side="right"))
        flagged = float(weight[self._drive[:above]].sum(dtype=np.int64))
        if point.tied and upto > above:
            flagged += point.tied * float(weight[self._drive[above:upto]].sum(dtype=np.int64))
        total = float(self._per_drive @ weight)
        return flagged / total if total else float("nan")


def resample_drives(seed: int, number: int, drives: int) -> Ints:
    """Return how often each drive is drawn in resample `number`: (drives,). Number 0 is the sample itself."""
    if number == 0:
        return np.ones(drives, dtype=np.int64)
    drawn = np.random.default_rng([seed, number]).integers(drives, size=drives)
    return np.bincount(drawn, minlength=drives)
