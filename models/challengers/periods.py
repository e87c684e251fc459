"""Person-period rows for any learner that gives a chance a row: the hazard of an interval, with it as a column."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from predrain.models.challengers.lessons import Lessons
from predrain.models.hazard import INTERVALS, PersonPeriods, failing, person_periods
from predrain.models.landmarks import crc

JUDGED = 3
"""Intervals up to 30 days; the last, to 90 days, is learned from but not asked for."""


def periods_of(lessons: Lessons) -> PersonPeriods:
    """Rows to learn from; of a landmark that nobody died after, the one interval that a hash names."""
    landmarks = lessons.landmarks
    return person_periods(landmarks, (crc(landmarks.serial) // 13 + landmarks.day // 7) % INTERVALS)


def within(x: NDArray[np.float32], interval: NDArray[np.int64]) -> NDArray[np.float32]:
    """(rows, columns + 1) with the interval as the last column."""
    return np.column_stack([x, interval.astype(np.float32)])


def chances(
    x: NDArray[np.float32], hazard: Callable[[NDArray[np.float32]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """(pairs, 3) chances to fail within 7, 14 and 30 days. hazard: rows with an interval -> chance to die in it."""
    each = [hazard(within(x, np.full(len(x), interval))) for interval in range(JUDGED)]
    return failing(np.stack(each, axis=1))
