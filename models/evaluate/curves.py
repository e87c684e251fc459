"""The curves behind the figures, for pictures: precision over recall, recall over false alarms, lead times.

Of the sample itself; a curve is thinned to the points that a picture can show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from predrain.models.evaluate.arrays import Floats, Ints
from predrain.models.evaluate.cohort import Aligned, Cohort, align, failures, gather, healthy_windows
from predrain.models.evaluate.ranking import HealthyCurve
from predrain.models.evaluate.scores import Scores
from predrain.models.evaluate.truth import FailureTruth

BUDGETS = tuple(float(rate) for rate in np.logspace(-4, -1, 61))
"""Shares of healthy windows flagged, 0.01 % to 10 %."""
POINTS = 200
LEAD_AT = 0.01


@dataclass(frozen=True, slots=True)
class Curves:
    """One forecast's curves."""

    recall: Sequence[float]
    """Rising, over rows."""
    precision: Sequence[float]
    """At each recall."""
    budget: Sequence[float]
    """Shares of healthy windows flagged."""
    recall_at_budget: Sequence[float]
    """Share of failures caught at each."""
    leads: Sequence[int]
    """Days before death of the first flag in the last 30 days, of each failure caught at 1 %."""


def curves_of(truth: FailureTruth, forecasts: Mapping[str, Scores], landmarks: Ints) -> dict[str, Curves]:
    """Of each forecast: precision and recall over rows with a known fate, recall per failure over false alarms,
    lead times. landmarks: days since 1970-01-01.
    """
    cohort = gather(truth, landmarks)
    return {name: _curves(cohort, align(cohort, truth, scores)) for name, scores in forecasts.items()}


def _curves(cohort: Cohort, aligned: Aligned) -> Curves:
    score, known = aligned.score("p_fail_30d"), cohort.known(30)
    recall, precision = _precision_recall(score[known], cohort.label[30][known])
    failed, healthy = failures(cohort), healthy_windows(cohort)
    ones = np.ones(cohort.drives, dtype=np.int64)
    windows = HealthyCurve(healthy.largest(score), healthy.drive, cohort.drives)
    best = failed.largest(score)
    caught = [point.caught(best) for point in windows.points(BUDGETS, ones)]
    point = windows.points((LEAD_AT,), ones)[0]
    lead = (cohort.death[cohort.drive] - cohort.landmark)[failed.rows]
    first = failed.largest(np.where(score > point.threshold, _on_rows(lead, failed.rows, len(score)), 0.0))
    return Curves(
        recall.tolist(),
        precision.tolist(),
        BUDGETS,
        [float(c.mean()) if len(c) else float("nan") for c in caught],
        first[first > 0].astype(int).tolist(),
    )


def _on_rows(values: Ints, rows: Ints, size: int) -> Floats:
    laid = np.zeros(size)
    laid[rows] = values
    return laid


def _precision_recall(score: Floats, label: Ints) -> tuple[Floats, Floats]:
    """Where tied groups end, thinned to POINTS evenly spread over recall."""
    order = np.argsort(-score, kind="stable")
    score, label = score[order], label[order]
    if not label.any():
        return np.empty(0), np.empty(0)
    ends = np.append(np.flatnonzero(score[1:] != score[:-1]), len(score) - 1)
    hits = np.cumsum(label)[ends]
    recall, precision = hits / hits[-1], hits / (ends + 1)
    gained = np.flatnonzero(np.diff(hits, prepend=0) > 0)
    pick = np.unique(np.searchsorted(recall[gained], np.linspace(0, 1, POINTS)).clip(0, len(gained) - 1))
    return recall[gained][pick], precision[gained][pick]
