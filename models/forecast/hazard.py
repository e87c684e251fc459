"""The discrete-time hazard: probability of death in an interval after the landmark, given life at its start.

A landmark becomes up to four rows, one for each interval whose start the drive lived to see. The interval is a
feature. A drive that leaves alive inside an interval, or is still watched, counts for the part that it lived
through and for nothing later: it is censored, not healthy. The p_fail at 7, 14 and 30 days is one minus the product of
survivals, so the horizons are ordered by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from predrain.models.forecast.booster_columns import INTERVAL, find_direction
from predrain.models.forecast.hazard_trees import TreePredictor
from predrain.models.forecast.landmarks import Landmarks

if TYPE_CHECKING:
    import lightgbm as lgb

EDGES: Final = (0, 7, 14, 30, 90)
"""Days after the landmark between which a hazard is constant."""
INTERVALS: Final = len(EDGES) - 1


@dataclass(frozen=True, slots=True)
class Recipe:
    """The parameters with which a booster is grown."""

    rounds: int = 160
    rate: float = 0.05
    leaves: int = 8
    least: float = 60.0
    columns: float = 0.5
    rows: float = 0.8
    ridge: float = 20.0
    half_life: float = 450.0
    """Days after which a landmark weighs half, because fleets, firmware and readings drift."""
    monotone: bool = True
    """True if a worse value of a column never lowers the probability. This holds on any drive, so on models never
    seen."""

    def parameters(self, seed: int, threads: int, names: Sequence[str]) -> Mapping[str, object]:
        """Return LightGBM's parameters. The same seed gives the same trees on any number of threads.

        names: the columns before the interval.
        """
        return {
            "monotone_constraints": [
                find_direction(name) if self.monotone else 0 for name in (*names, INTERVAL)
            ],
            "objective": "binary",
            "learning_rate": self.rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": int(self.least),
            "feature_fraction": self.columns,
            "bagging_fraction": self.rows,
            "bagging_freq": 1,
            "lambda_l2": self.ridge,
            "max_bin": 127,
            "boost_from_average": True,
            "deterministic": True,
            "force_col_wise": True,
            "seed": seed,
            "num_threads": threads,
            "verbosity": -1,
        }


@dataclass(frozen=True, slots=True)
class PersonPeriods:
    """Rows to learn from, each with a landmark and an interval."""

    landmark: NDArray[np.int64]
    interval: NDArray[np.int64]
    dies: NDArray[np.bool_]
    weight: NDArray[np.float64]


def person_periods(landmarks: Landmarks, thin: NDArray[np.int64] | None = None) -> PersonPeriods:
    """Expand landmarks into rows.

    thin: (landmarks,) the only interval that is kept of a landmark without a death.
    """
    parts: list[tuple[NDArray[np.int64], int, NDArray[np.bool_], NDArray[np.float64]]] = []
    for interval in range(INTERVALS):
        opens, closes = EDGES[interval], EDGES[interval + 1]
        dies = landmarks.died & (landmarks.follow > opens) & (landmarks.follow <= closes)
        lives = (landmarks.follow > opens) & ~dies
        # A drive that was seen alive for a part of the interval is as much evidence as that part.
        weight = landmarks.weight * np.where(
            dies, 1.0, np.clip((landmarks.follow - opens) / (closes - opens), 0, 1)
        )
        if thin is not None:
            spared = ~(landmarks.died & (landmarks.follow <= EDGES[-1]))
            lives &= ~spared | (thin == interval)
            weight = np.where(spared, weight * INTERVALS, weight)
        which = np.flatnonzero(dies | lives)
        parts.append((which, interval, dies[which], weight[which]))
    return PersonPeriods(
        landmark=np.concatenate([p[0] for p in parts]),
        interval=np.concatenate([np.full(len(p[0]), p[1]) for p in parts]),
        dies=np.concatenate([p[2] for p in parts]),
        weight=np.concatenate([p[3] for p in parts]),
    )


def grow_hazard_booster(
    x: NDArray[np.float32],
    periods: PersonPeriods,
    recipe: Recipe,
    *,
    seed: int,
    threads: int,
    names: list[str],
    tell: Callable[[str], None] = lambda _: None,
) -> lgb.Booster:
    """Grow a booster on person-period rows. x: (landmarks, columns); the interval is appended as the last column."""
    import lightgbm as lgb

    rows = np.column_stack([x[periods.landmark], periods.interval.astype(np.float32)])
    data = lgb.Dataset(
        rows,
        label=periods.dies.astype(np.float32),
        weight=periods.weight,
        feature_name=[*names, INTERVAL],
        params={"max_bin": 127, "verbosity": -1, "num_threads": threads, "feature_pre_filter": False},
        free_raw_data=True,
    )

    def progress(env: object) -> None:
        done = getattr(env, "iteration", 0) + 1
        if done % 50 == 0:
            tell(f"trees: {done} of {recipe.rounds}")

    parameters = dict(recipe.parameters(seed, threads, names))
    return lgb.train(parameters, data, recipe.rounds, callbacks=[progress])


def predict_hazards(booster: TreePredictor, x: NDArray[np.float32], threads: int) -> NDArray[np.float64]:
    """Compute the probability of death in each interval, given life at its start: (landmarks, INTERVALS)."""
    interval = np.tile(np.arange(INTERVALS, dtype=np.float32), len(x))
    rows = np.column_stack([np.repeat(x, INTERVALS, axis=0), interval])
    return np.asarray(booster.predict(rows, num_threads=threads)).reshape(len(x), INTERVALS)


def compute_failure_probabilities(hazard: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the probability of death by each edge, 7, 14, 30 and 90 days: (landmarks, INTERVALS)."""
    return np.asarray(1.0 - np.cumprod(1.0 - hazard, axis=1), dtype=np.float64)
