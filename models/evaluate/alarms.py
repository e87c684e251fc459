"""Recall and cost of a forecaster's own alarms: its status, at the rate at which it raises it.

Both figures count "any flag in 30 days", as the operating points do. The number of flags is not adjusted to a rate.
"""

from __future__ import annotations

import numpy as np

from predrain.models.evaluate.arrays import Floats, Ints
from predrain.models.evaluate.cohort import ALARMS, AlignedScores, Cohort, group_failures, healthy_windows


class OwnAlarms:
    """Recall and false-alarm rate of each alarm level that a forecaster raises at all."""

    def __init__(self, cohort: Cohort, aligned: AlignedScores) -> None:
        failed, healthy = group_failures(cohort), healthy_windows(cohort)
        level = aligned.probability("alarm") if "alarm" in aligned.columns else np.zeros(len(cohort.drive))
        self._failed, self._healthy = failed.drive, healthy.drive
        self._failure_level, self._window_level = (
            failed.compute_group_maxima(level),
            healthy.compute_group_maxima(level),
        )
        raised = set(level[level > 0].tolist())
        self.words = {word: at for at, word in enumerate(ALARMS, start=1) if at in raised}
        """Word -> level, for the levels that are raised."""

    def measure(self, weight: Ints) -> dict[str, float]:
        """Return `recall_at_own_WORD` and `far_at_own_WORD` under these weights. A word includes the worse levels.

        weight: (drives,) how often each drive counts.
        """
        found = {}
        for word, level in self.words.items():
            found[f"recall_at_own_{word}"] = _compute_flagged_share(
                self._failure_level >= level, weight[self._failed]
            )
            found[f"far_at_own_{word}"] = _compute_flagged_share(
                self._window_level >= level, weight[self._healthy]
            )
        return found


def _compute_flagged_share(flagged: np.ndarray, weight: Ints) -> float:
    counted: Floats = weight.astype(np.float64)
    total = float(counted.sum())
    return float(counted[flagged].sum()) / total if total else float("nan")
