"""Calibration and thresholds, both from forecasts of drives that the forecaster had not seen.

One logistic correction a + b logit(p) serves every horizon, so that their order stays. Thresholds are the values of
p_fail_30d that 1 in 1,000 and 1 in 100 healthy windows (a drive's 30 days without a death in them) ever reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

WINDOW: Final = 30
"""Days of a window, and the horizon by which it is judged."""
WARNING_RATE: Final = 0.01
BAD_RATE: Final = 0.001
"""Share of healthy windows that are called bad. WARNING_RATE is the share that are called at least a warning."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The correction logit(p') = shift + slope logit(p)."""

    shift: float = 0.0
    slope: float = 1.0

    def __call__(
        self, p: NDArray[np.float64], log_odds: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return corrected probabilities, any shape, strictly increasing, within (0, 1). log_odds: (drives,)
        is added to rows."""
        more = 0.0 if log_odds is None else log_odds[:, None]
        corrected: NDArray[np.float64] = 1.0 / (
            1.0 + np.exp(-(self.shift + self.slope * compute_logit(p) + more))
        )
        return corrected


def compute_logit(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log odds. Probabilities are kept a billionth away from 0 and 1."""
    safe = np.clip(p, 1e-9, 1 - 1e-9)
    odds: NDArray[np.float64] = np.log(safe) - np.log1p(-safe)
    return odds


def fit_calibration(
    p: NDArray[np.float64], died: NDArray[np.bool_], weight: NDArray[np.float64], prior: float = 25.0
) -> Calibration:
    """Fit by weighted maximum likelihood (Newton), drawn to the identity as by `prior` pseudo-observations.

    p: (n,) forecasts of unseen drives. Weights are scaled so that their sum over deaths is the number of deaths.
    """
    x = np.column_stack([np.ones(len(p)), compute_logit(p)])
    theta = np.array([0.0, 1.0])
    start = theta.copy()
    penalty = np.diag([prior * 0.1, prior])
    for _ in range(50):
        q = 1.0 / (1.0 + np.exp(-x @ theta))
        gradient = x.T @ (weight * (died - q)) - penalty @ (theta - start)
        curvature = (x * (weight * q * (1 - q))[:, None]).T @ x + penalty
        step = np.linalg.solve(curvature, gradient)
        theta = theta + np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-9:
            break
    return Calibration(float(theta[0]), float(max(theta[1], 0.05)))


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Values of p_fail_30d; good < warning <= bad."""

    warning: float
    bad: float


def thresholds_of(
    p: NDArray[np.float64],
    drive: NDArray[np.int64],
    day: NDArray[np.int64],
    died: NDArray[np.bool_],
    known: NDArray[np.bool_],
) -> Thresholds:
    """Compute thresholds from all landmarks of a set of drives.

    died: within 30 days. known: the drive died or was observed for 30 days.
    """
    window = drive * 100_000 + (day - (day.min() if len(day) else 0)) // WINDOW
    names, at = np.unique(window, return_inverse=True)
    worst = np.full(len(names), -np.inf)
    healthy = known & ~died
    np.maximum.at(worst, at[healthy], p[healthy])
    spoilt = np.zeros(len(names), dtype=bool)
    spoilt[at[died]] = True
    scores = np.sort(worst[~spoilt & np.isfinite(worst)])
    if len(scores) < 100:
        return Thresholds(warning=0.05, bad=0.25)
    bad = float(scores[-max(1, round(len(scores) * BAD_RATE))])
    warning = float(scores[-max(1, round(len(scores) * WARNING_RATE))])
    return Thresholds(warning=min(warning, bad), bad=bad)
