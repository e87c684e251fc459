"""What a challenger learns from all drives, and how good it is on drives that it has not seen.

As the shipped recipe does, every challenger learns four times: from each two thirds of the drives, to forecast the
last third, which calibrates it and weighs it in a blend; and from all drives, to forecast those to be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from predrain.models.calibrate import Calibration, calibrated
from predrain.models.challengers.lessons import FOLDS, Lessons, Tell, TrainingView
from predrain.models.landmarks import WEEKLY
from predrain.models.recent_mortality import lately_of, log_odds

Forecaster = Callable[[TrainingView], NDArray[np.float64]]
"""(pairs, 3): chances to fail within 7, 14 and 30 days."""
Learner = Callable[[Lessons, int, int, Tell], Forecaster]
"""(lessons, seed, threads, tell) -> forecaster."""


@dataclass(frozen=True, slots=True)
class Crossed:
    """A challenger that has learned."""

    forecaster: Forecaster
    calibration: Calibration
    lately: Mapping[str, float]
    """Model -> how many times as often as forecast its drives died lately, as in the recipe."""
    unseen: NDArray[np.float64]
    """(landmarks, 3) calibrated chances, each from forecasters that had not seen the drive."""

    def __call__(self, sight: TrainingView) -> NDArray[np.float64]:
        """(pairs, 3) calibrated chances to fail within 7, 14 and 30 days."""
        return self.calibration(self.forecaster(sight), log_odds(self.lately, sight.model))


def crossed(name: str, learner: Learner, lessons: Lessons, *, seed: int, threads: int, tell: Tell) -> Crossed:
    """Learn from all drives; calibrate by what was not seen."""
    fold = lessons.landmarks.fold(FOLDS)
    unseen = np.zeros((len(fold), 3))
    for number in range(FOLDS):
        tell(f"{name}, without fold {number + 1} of {FOLDS}")
        forecaster = learner(lessons.only(fold != number), seed, threads, tell)
        unseen[fold == number] = forecaster(lessons.sight.only(fold == number))
    dies, known = lessons.landmarks.outcome(30)
    calibration = calibrated(unseen[known, 2], dies[known], lessons.landmarks.weight[known])
    counted = replace(lessons.landmarks, weight=lessons.plain)
    lately = lately_of(counted, calibration(unseen)[:, 2], WEEKLY.step)
    corrected = calibration(unseen, log_odds(lately, lessons.sight.model))
    tell(f"{name}, all drives")
    return Crossed(learner(lessons, seed, threads, tell), calibration, lately, corrected)
