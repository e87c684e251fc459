"""Cross-fitting: a challenger is trained on all drives, and its quality is measured on drives that it has not seen.

As in the shipped recipe, every challenger is trained four times. Three trainings use two thirds of the drives each,
and forecast the last third, which calibrates the challenger and gives its weight in a blend. The fourth uses all
drives, and forecasts those to be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from predrain.models.forecast.calibration import Calibration, fit_calibration
from predrain.models.forecast.landmarks import WEEKLY
from predrain.models.forecast.recent_mortality import log_odds, measure_recent_mortality
from predrain.models.lab.challengers.training_rows import FOLDS, Tell, TrainingRows, TrainingView

Forecaster = Callable[[TrainingView], NDArray[np.float64]]
"""Returns (pairs, 3): probabilities of failure within 7, 14 and 30 days."""
Learner = Callable[[TrainingRows, int, int, Tell], Forecaster]
"""(training rows, seed, threads, tell) -> forecaster."""


@dataclass(frozen=True, slots=True)
class CrossFitted:
    """A challenger that was trained and calibrated."""

    forecaster: Forecaster
    calibration: Calibration
    lately: Mapping[str, float]
    """Model -> ratio of its drives' latest deaths to those forecast, as in the recipe."""
    unseen: NDArray[np.float64]
    """(landmarks, 3) calibrated probabilities, each from forecasters that had not seen the drive."""

    def __call__(self, sight: TrainingView) -> NDArray[np.float64]:
        """Return calibrated probabilities of failure within 7, 14 and 30 days: (pairs, 3)."""
        return self.calibration(self.forecaster(sight), log_odds(self.lately, sight.model))


def cross_fit_challenger(
    name: str, learner: Learner, lessons: TrainingRows, *, seed: int, threads: int, tell: Tell
) -> CrossFitted:
    """Train on all drives, and calibrate by forecasts of drives that were not seen."""
    fold = lessons.landmarks.assign_folds(FOLDS)
    unseen = np.zeros((len(fold), 3))
    for number in range(FOLDS):
        tell(f"{name}, without fold {number + 1} of {FOLDS}")
        forecaster = learner(lessons.select_rows(fold != number), seed, threads, tell)
        unseen[fold == number] = forecaster(lessons.sight.select_rows(fold == number))
    dies, known = lessons.landmarks.outcome(30)
    calibration = fit_calibration(unseen[known, 2], dies[known], lessons.landmarks.weight[known])
    counted = replace(lessons.landmarks, weight=lessons.plain)
    lately = measure_recent_mortality(counted, calibration(unseen)[:, 2], WEEKLY.step)
    corrected = calibration(unseen, log_odds(lately, lessons.sight.model))
    tell(f"{name}, all drives")
    return CrossFitted(learner(lessons, seed, threads, tell), calibration, lately, corrected)
