"""A random forest on the features that predicts which happens first: failure in 7, 14 or 30 days, or none."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.models.forecast.hazard import EDGES
from predrain.models.lab.challengers.cross_fitting import Forecaster
from predrain.models.lab.challengers.training_rows import Tell, TrainingRows, TrainingView

TREES: Final = 100
LEAST: Final = 10
ROWS: Final = 0.2
"""Share of the landmarks that each tree is grown on."""


def train_forest(lessons: TrainingRows, seed: int, threads: int, _tell: Tell) -> Forecaster:
    """Train the forest with equal total weights of failures and survivors; the odds are corrected for that
    afterwards."""
    from sklearn.ensemble import RandomForestClassifier

    dies, known = lessons.landmarks.outcome(30)
    when = np.where(dies, np.searchsorted(EDGES, lessons.landmarks.follow, side="left") - 1, 3)[known]
    weight = lessons.landmarks.weight[known]
    share = float(weight[when < 3].sum() / weight[when == 3].sum())
    grown = RandomForestClassifier(
        TREES, min_samples_leaf=LEAST, max_samples=ROWS, n_jobs=threads, random_state=seed
    ).fit(lessons.sight.x[known], when, np.where(when < 3, weight / share, weight))
    column = [
        int(np.flatnonzero(grown.classes_ == kind)[0]) if kind in grown.classes_ else -1 for kind in range(3)
    ]

    def forecast(sight: TrainingView) -> NDArray[np.float64]:
        seen = grown.predict_proba(sight.x)
        first = np.stack([seen[:, at] if at >= 0 else np.zeros(len(seen)) for at in column], axis=1)
        odds = share * first
        return np.asarray(np.cumsum(odds / (odds.sum(axis=1) + 1.0 - first.sum(axis=1))[:, None], axis=1))

    return forecast
