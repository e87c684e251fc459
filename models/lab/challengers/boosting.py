"""Boosting by LightGBM and by scikit-learn on person-period rows of all features, the family's rate and the maker."""

from __future__ import annotations

import numpy as np

from predrain.features.feature_schema import NAMES_IN_ORDER
from predrain.models.forecast.drive_family import COLUMNS
from predrain.models.forecast.hazard import (
    Recipe,
    compute_failure_probabilities,
    grow_hazard_booster,
    predict_hazards,
)
from predrain.models.lab.challengers.cross_fitting import Forecaster
from predrain.models.lab.challengers.person_periods import (
    JUDGED,
    append_interval_column,
    periods_of,
    predict_horizon_probabilities,
)
from predrain.models.lab.challengers.training_rows import Tell, TrainingRows


def train_shipped_recipe(lessons: TrainingRows, seed: int, threads: int, tell: Tell) -> Forecaster:
    """Train LightGBM with the parameters of the recipe that ships."""
    names = [*NAMES_IN_ORDER, *COLUMNS]
    periods = periods_of(lessons)
    booster = grow_hazard_booster(
        lessons.sight.x, periods, Recipe(), seed=seed, threads=threads, names=names, tell=tell
    )
    return lambda sight: compute_failure_probabilities(predict_hazards(booster, sight.x, threads)[:, :JUDGED])


def hist_boosting(lessons: TrainingRows, seed: int, _threads: int, _tell: Tell) -> Forecaster:
    """Train scikit-learn's boosting with the recipe's rows, leaves and penalties."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    recipe, periods = Recipe(), periods_of(lessons)
    trees = HistGradientBoostingClassifier(
        learning_rate=recipe.rate,
        max_iter=recipe.rounds,
        max_leaf_nodes=recipe.leaves,
        min_samples_leaf=int(recipe.least),
        l2_regularization=recipe.ridge,
        max_features=recipe.columns,
        max_bins=127,
        early_stopping=False,  # pyright: ignore[reportArgumentType]
        random_state=seed,
    )
    rows = append_interval_column(lessons.sight.x[periods.landmark], periods.interval)
    # A column with fewer than two values cannot be binned.
    telling = np.flatnonzero(np.fmin.reduce(rows) < np.fmax.reduce(rows))
    trees.fit(rows[:, telling], periods.dies, periods.weight)
    return lambda sight: predict_horizon_probabilities(
        sight.x, lambda rows: trees.predict_proba(rows[:, telling])[:, 1]
    )
