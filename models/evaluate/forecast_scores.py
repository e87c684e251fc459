"""Judge one forecast: every figure of the protocol under any weights of the drives.

A figure has a name (`recall_at_1pct`, `brier_skill_30d`) and a value. The bootstrap asks for all figures many times
under other weights, and differences between forecasts come from the same weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from predrain.models.evaluate.arrays import Floats, Ints, weighted_quantile
from predrain.models.evaluate.cohort import HORIZONS, AlignedScores, Cohort, group_failures, healthy_windows
from predrain.models.evaluate.drive_outcomes import FailureTruth
from predrain.models.evaluate.ranking import RATES, HealthyCurve, OperatingPoint, RowCurve
from predrain.models.evaluate.reliability import Bin, Reliability
from predrain.models.evaluate.strata import Strata, assign_strata

NAMED = {0.001: "0.1pct", 0.01: "1pct"}
LEAD_DAYS = (7, 14)


@dataclass(frozen=True, slots=True)
class EvaluationCase:
    """The case that every forecast is judged on: the cohort, its failures and windows, and their strata."""

    truth: FailureTruth
    cohort: Cohort
    strata: Strata

    @classmethod
    def from_cohort(cls, truth: FailureTruth, cohort: Cohort) -> EvaluationCase:
        """Create the case with the strata of its failures and windows."""
        return cls(
            truth, cohort, assign_strata(truth, cohort, group_failures(cohort), healthy_windows(cohort))
        )


class Judge:
    """Ranking, calibration, lead time and strata of one forecast."""

    def __init__(self, question: EvaluationCase, aligned: AlignedScores) -> None:
        cohort = question.cohort
        self._question = question
        self._failed, self._healthy = group_failures(cohort), healthy_windows(cohort)
        score = aligned.score("p_fail_30d")
        known = cohort.has_known_label(30)
        well = known & (cohort.label[30] == 0)
        self._rows = RowCurve(score[known], cohort.label[30][known], cohort.drive[known])
        self._window_score = self._healthy.compute_group_maxima(score)
        self._windows = HealthyCurve(self._window_score, self._healthy.drive, cohort.drives)
        self._well_rows = HealthyCurve(score[well], cohort.drive[well], cohort.drives)
        self._failure_score = self._failed.compute_group_maxima(score)
        self._landmark_score = score[self._failed.rows]
        self._landmark_lead = (cohort.death[cohort.drive] - cohort.landmark)[self._failed.rows].astype(
            np.float64
        )
        self.reliability = {
            horizon: _measure_reliability(cohort, aligned, horizon)
            for horizon in HORIZONS
            if is_probability(aligned.columns.get(f"p_fail_{horizon}d"))
        }

    def measure(self, weight: Ints) -> dict[str, float]:
        """Compute every figure under these weights. weight: (drives,) how often each drive counts."""
        figures = {"pr_auc": self._rows.average_precision(weight)}
        for rate, point in zip(RATES, self._windows.find_operating_points(RATES, weight), strict=True):
            figures |= {
                f"{name}_at_{NAMED[rate]}": value for name, value in self._flagged(point, weight).items()
            }
        for horizon, reliability in self.reliability.items():
            judged = reliability.figures(weight)
            figures |= {
                f"expected_over_observed_{horizon}d": judged.expected_over_observed,
                f"brier_skill_{horizon}d": judged.brier_skill,
                f"ece_{horizon}d": judged.ece,
            }
        return figures

    def _flagged(self, point: OperatingPoint, weight: Ints) -> dict[str, float]:
        counted = weight[self._failed.drive].astype(np.float64)
        caught = point.flag_scores(self._failure_score) * counted
        lead = self._lead(point)
        p10, p50, p90 = weighted_quantile(lead, caught, (0.1, 0.5, 0.9))
        found = {
            "recall": _divide_or_nan(caught.sum(), counted.sum()),
            "row_far": self._well_rows.share_caught(point, weight),
            "threshold": point.threshold,
            "lead_p10_days": p10,
            "lead_p50_days": p50,
            "lead_p90_days": p90,
        }
        for days in LEAD_DAYS:
            found[f"lead_share_{days}d"] = _divide_or_nan(caught[lead >= days].sum(), caught.sum())
        strata = self._question.strata
        among = counted @ strata.failure
        for name, hit, total in zip(strata.names, caught @ strata.failure, among, strict=True):
            found[f"recall[{name}]"] = _divide_or_nan(hit, total)
        return found

    def _lead(self, point: OperatingPoint) -> Floats:
        """Return the days from the earliest flagged landmark to death: (failures,), 0 without one.

        A landmark exactly on the threshold counts only if the failure has none above it.
        """
        if not len(self._failed):
            return np.empty(0)
        best = np.repeat(self._failure_score, np.diff(self._failed.start))
        flagged = (self._landmark_score > point.threshold) | (
            (self._landmark_score == point.threshold) & (best == point.threshold)
        )
        lead = np.where(flagged, self._landmark_lead, 0.0)
        return np.maximum.reduceat(lead, self._failed.start[:-1])

    def false_alarms_by_stratum(self, rate: float) -> Mapping[str, float]:
        """Return the share of each stratum's healthy windows flagged at the overall threshold, for the sample
        itself."""
        ones = np.ones(self._question.cohort.drives, dtype=np.int64)
        point = self._windows.find_operating_points((rate,), ones)[0]
        caught = point.flag_scores(self._window_score)
        strata = self._question.strata
        flagged, total = caught @ strata.window, strata.window.sum(axis=0)
        return {name: _divide_or_nan(f, t) for name, f, t in zip(strata.names, flagged, total, strict=True)}

    def tables(self) -> dict[int, list[Bin]]:
        """Return the reliability table of each horizon."""
        return {horizon: reliability.table() for horizon, reliability in self.reliability.items()}


def is_probability(column: Floats | None) -> bool:
    """Return whether a column exists and holds probabilities.

    Counts, and alarms that are only on or off, are mere rankings.
    """
    if column is None or bool(np.any((column < 0) | (column > 1))):
        return False
    return not bool(np.all(np.isnan(column) | (column == 0) | (column == 1)))


def _measure_reliability(cohort: Cohort, aligned: AlignedScores, horizon: int) -> Reliability:
    known = cohort.has_known_label(horizon)
    p = aligned.probability(f"p_fail_{horizon}d")[known]
    return Reliability(p, cohort.label[horizon][known], cohort.drive[known], cohort.drives)


def _divide_or_nan(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else float("nan")
