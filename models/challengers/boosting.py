"""Boosting on person-period rows of all features, the family's rate and the maker: LightGBM's, and scikit-learn's."""

from __future__ import annotations

import numpy as np

from predrain.features.schema import NAMES_IN_ORDER
from predrain.models.challengers.crossed import Forecaster
from predrain.models.challengers.lessons import Lessons, Tell
from predrain.models.challengers.periods import JUDGED, chances, periods_of, within
from predrain.models.family import COLUMNS
from predrain.models.hazard import Recipe, failing, grow, hazards


def shipped(lessons: Lessons, seed: int, threads: int, tell: Tell) -> Forecaster:
    """LightGBM with the parameters of the recipe that ships."""
    names = [*NAMES_IN_ORDER, *COLUMNS]
    periods = periods_of(lessons)
    booster = grow(lessons.sight.x, periods, Recipe(), seed=seed, threads=threads, names=names, tell=tell)
    return lambda sight: failing(hazards(booster, sight.x, threads)[:, :JUDGED])


def hist_boosting(lessons: Lessons, seed: int, _threads: int, _tell: Tell) -> Forecaster:
    """scikit-learn's, with the recipe's rows, leaves and penalties."""
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
    rows = within(lessons.sight.x[periods.landmark], periods.interval)
    # A column without two values cannot be binned.
    telling = np.flatnonzero(np.fmin.reduce(rows) < np.fmax.reduce(rows))
    trees.fit(rows[:, telling], periods.dies, periods.weight)
    return lambda sight: chances(sight.x, lambda rows: trees.predict_proba(rows[:, telling])[:, 1])
