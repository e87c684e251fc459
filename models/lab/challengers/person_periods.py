"""Person-period rows for any learner that gives a probability for each row: the interval is a column of the row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from predrain.models.forecast.hazard import (
    INTERVALS,
    PersonPeriods,
    compute_failure_probabilities,
    person_periods,
)
from predrain.models.forecast.landmarks import hash_serials
from predrain.models.lab.challengers.training_rows import TrainingRows

JUDGED = 3
"""Number of intervals up to 30 days. The last one, to 90 days, is learned from but not forecast."""


def periods_of(lessons: TrainingRows) -> PersonPeriods:
    """Build the rows to learn from. A landmark without a later death gives one row, for the interval that a
    hash selects."""
    landmarks = lessons.landmarks
    return person_periods(landmarks, (hash_serials(landmarks.serial) // 13 + landmarks.day // 7) % INTERVALS)


def append_interval_column(x: NDArray[np.float32], interval: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return (rows, columns + 1) with the interval as the last column."""
    return np.column_stack([x, interval.astype(np.float32)])


def predict_horizon_probabilities(
    x: NDArray[np.float32], hazard: Callable[[NDArray[np.float32]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Compute the probabilities of failure within 7, 14 and 30 days: (pairs, 3).

    hazard: a function from rows with an interval to the probability of death in it.
    """
    each = [hazard(append_interval_column(x, np.full(len(x), interval))) for interval in range(JUDGED)]
    return compute_failure_probabilities(np.stack(each, axis=1))
