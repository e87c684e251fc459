"""A blend: a weighted mean of several forecasters' log odds, with weights fitted on drives that none of them
had seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.models.forecast.calibration import compute_logit
from predrain.models.forecast.landmarks import Landmarks

DRAWN: Final = 25.0
"""Number of pseudo-observations by which the weights are drawn to equal weights."""


@dataclass(frozen=True, slots=True)
class Blend:
    """The blend: log odds = shift + sum of weight x log odds. No weight is negative, so horizons stay ordered."""

    shift: float
    weights: tuple[float, ...]

    def __call__(self, members: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the probabilities of the blend, any shape. members: probabilities of that shape, in the
        order of the weights."""
        odds = self.shift + sum(
            weight * compute_logit(chance) for weight, chance in zip(self.weights, members, strict=True)
        )
        return np.asarray(1.0 / (1.0 + np.exp(-odds)))


def fit_blend(members: Sequence[NDArray[np.float64]], landmarks: Landmarks) -> Blend:
    """Fit the weights under which the 30-day outcomes are most likely. members: (landmarks, 3) probabilities
    of unseen drives."""
    from scipy.optimize import minimize

    dies, known = landmarks.outcome(30)
    x = np.column_stack([np.ones(int(known.sum())), *(compute_logit(member[known, 2]) for member in members)])
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
