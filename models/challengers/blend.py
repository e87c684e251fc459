"""A blend: a weighted mean of several forecasters' log odds, weighed on drives that none of them had seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.models.calibrate import logit
from predrain.models.landmarks import Landmarks

DRAWN: Final = 25.0
"""Pseudo-observations by which the weights are drawn to equal ones."""


@dataclass(frozen=True, slots=True)
class Blend:
    """log odds = shift + sum of weight x log odds; no weight is negative, so horizons stay ordered."""

    shift: float
    weights: tuple[float, ...]

    def __call__(self, members: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Chances of the blend, any shape; members: chances of the same shape, in the order of the weights."""
        odds = self.shift + sum(
            weight * logit(chance) for weight, chance in zip(self.weights, members, strict=True)
        )
        return np.asarray(1.0 / (1.0 + np.exp(-odds)))


def blended(members: Sequence[NDArray[np.float64]], landmarks: Landmarks) -> Blend:
    """Weights that make the 30-day fates most likely. members: (landmarks, 3) chances of drives not seen."""
    from scipy.optimize import minimize

    dies, known = landmarks.outcome(30)
    x = np.column_stack([np.ones(int(known.sum())), *(logit(member[known, 2]) for member in members)])
    died, weight = dies[known], landmarks.weight[known]
    start = np.array([0.0, *(1.0 / len(members) for _ in members)])
    drawn = np.array([0.1 * DRAWN, *(DRAWN for _ in members)])

    def loss(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        odds = x @ theta
        p = 1.0 / (1.0 + np.exp(-odds))
        likelihood = float(weight @ (np.logaddexp(0.0, odds) - died * odds))
        off = theta - start
        return likelihood + float(drawn @ off**2) / 2, x.T @ (weight * (p - died)) + drawn * off

    bounds = [(None, None), *((0.0, None) for _ in members)]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return Blend(float(found.x[0]), tuple(float(w) for w in found.x[1:]))
