"""Learning on two thirds of the drives to forecast the other third, and what comes of it.

Every challenger is three forecasters, each of which has not seen a third of the drives. On that third they say how
good they are, which calibrates them and weighs them in a blend; of drives to be judged they give the mean log odds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.calibrate import Calibration, calibrated, logit
from models.challengers.lessons import FOLDS, Lessons, Sight, Tell

Forecaster = Callable[[Sight], NDArray[np.float64]]
"""(pairs, 3): chances to fail within 7, 14 and 30 days."""
Learner = Callable[[Lessons, int, int, Tell], Forecaster]
"""(lessons, seed, threads, tell) -> forecaster."""


@dataclass(frozen=True, slots=True)
class Crossed:
    """A challenger that has learned."""

    forecasters: tuple[Forecaster, ...]
    calibration: Calibration
    unseen: NDArray[np.float64]
    """(landmarks, 3) calibrated chances, each of a drive that the forecaster had not seen."""

    def __call__(self, sight: Sight) -> NDArray[np.float64]:
        """(pairs, 3) calibrated chances to fail within 7, 14 and 30 days."""
        return self.calibration(_together([forecaster(sight) for forecaster in self.forecasters]))


def crossed(name: str, learner: Learner, lessons: Lessons, *, seed: int, threads: int, tell: Tell) -> Crossed:
    """Learn three times, calibrate by what was not seen."""
    fold = lessons.landmarks.fold(FOLDS)
    unseen = np.zeros((len(fold), 3))
    forecasters: list[Forecaster] = []
    for number in range(FOLDS):
        tell(f"{name}, {number + 1} of {FOLDS}")
        forecasters.append(learner(lessons.only(fold != number), seed, threads, tell))
        unseen[fold == number] = forecasters[-1](lessons.sight.only(fold == number))
    dies, known = lessons.landmarks.outcome(30)
    calibration = calibrated(unseen[known, 2], dies[known], lessons.landmarks.weight[known])
    return Crossed(tuple(forecasters), calibration, calibration(unseen))


def _together(chances: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.asarray(1.0 / (1.0 + np.exp(-np.mean([logit(p) for p in chances], axis=0))))
