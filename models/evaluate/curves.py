"""The curves for pictures: precision over recall, recall over false alarms, lead times.

The curves are those of the sample itself, not of resamples. They have only as many points as a picture can show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from predrain.models.evaluate.arrays import Floats, Ints
from predrain.models.evaluate.cohort import (
    AlignedScores,
    Cohort,
    align_scores,
    gather_cohort,
    group_failures,
    healthy_windows,
)
from predrain.models.evaluate.drive_outcomes import FailureTruth
from predrain.models.evaluate.ranking import HealthyCurve
from predrain.models.evaluate.score_rows import Scores

BUDGETS = tuple(float(rate) for rate in np.logspace(-4, -1, 61))
"""Flagged shares of the healthy windows, 0.01 % to 10 %."""
POINTS = 200
LEAD_AT = 0.01


@dataclass(frozen=True, slots=True)
class Curves:
    """The curves of one forecast."""

    recall: Sequence[float]
    """Recall over rows, rising."""
    precision: Sequence[float]
    """The precision at each recall."""
    budget: Sequence[float]
    """Flagged shares of the healthy windows."""
    recall_at_budget: Sequence[float]
    """The share of failures that is caught at each budget."""
    leads: Sequence[int]
    """Days from the first flag in the last 30 days to death, for each failure caught at a budget of 1 %."""


def curves_of(truth: FailureTruth, forecasts: Mapping[str, Scores], landmarks: Ints) -> dict[str, Curves]:
    """Compute the curves of each forecast: precision and recall over rows, recall of failures over false alarms,
    lead times.

    Rows count if their outcome is known. landmarks: days since 1970-01-01.
    """
    cohort = gather_cohort(truth, landmarks)
    return {
        name: _compute_curves(cohort, align_scores(cohort, truth, scores))
        for name, scores in forecasts.items()
    }


def _compute_curves(cohort: Cohort, aligned: AlignedScores) -> Curves:
    score, known = aligned.score("p_fail_30d"), cohort.has_known_label(30)
    recall, precision = _precision_recall(score[known], cohort.label[30][known])
    failed, healthy = group_failures(cohort), healthy_windows(cohort)
    ones = np.ones(cohort.drives, dtype=np.int64)
    windows = HealthyCurve(healthy.compute_group_maxima(score), healthy.drive, cohort.drives)
    best = failed.compute_group_maxima(score)
    caught = [point.flag_scores(best) for point in windows.find_operating_points(BUDGETS, ones)]
    point = windows.find_operating_points((LEAD_AT,), ones)[0]
    lead = (cohort.death[cohort.drive] - cohort.landmark)[failed.rows]
    first = failed.compute_group_maxima(
        np.where(score > point.threshold, _on_rows(lead, failed.rows, len(score)), 0.0)
    )
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
    """Compute recall and precision where groups of equal scores end, at up to POINTS points evenly spread over
    recall."""
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
