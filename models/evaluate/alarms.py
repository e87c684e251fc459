"""What a forecaster's own alarms catch and cost: its status, at whatever rate it raises it.

Both sides are "any flag in 30 days", as with the operating points; nothing is shared out or tuned.
"""

from __future__ import annotations

import numpy as np

from predrain.models.evaluate.arrays import Floats, Ints
from predrain.models.evaluate.cohort import ALARMS, Aligned, Cohort, failures, healthy_windows


class OwnAlarms:
    """Recall and false-alarm rate of each level of alarm that a forecaster raises at all."""

    def __init__(self, cohort: Cohort, aligned: Aligned) -> None:
        failed, healthy = failures(cohort), healthy_windows(cohort)
        level = aligned.probability("alarm") if "alarm" in aligned.columns else np.zeros(len(cohort.drive))
        self._failed, self._healthy = failed.drive, healthy.drive
        self._failure_level, self._window_level = failed.largest(level), healthy.largest(level)
        raised = set(level[level > 0].tolist())
        self.words = {word: at for at, word in enumerate(ALARMS, start=1) if at in raised}
        """Word -> level, of those that are raised."""

    def measure(self, weight: Ints) -> dict[str, float]:
        """`recall_at_own_WORD`, `far_at_own_WORD` under these weights; a word includes what is worse.

        weight: (drives,) how often each drive counts.
        """
        found = {}
        for word, level in self.words.items():
            found[f"recall_at_own_{word}"] = _share(self._failure_level >= level, weight[self._failed])
            found[f"far_at_own_{word}"] = _share(self._window_level >= level, weight[self._healthy])
        return found


def _share(flagged: np.ndarray, weight: Ints) -> float:
    counted: Floats = weight.astype(np.float64)
    total = float(counted.sum())
    return float(counted[flagged].sum()) / total if total else float("nan")
