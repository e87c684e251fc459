"""The effect of a drive's identity beside its symptoms: how often drives of its model and age die.

The booster reads symptoms alone (models.forecast.booster_columns). A drive's odds are its booster's odds times a power
of its base rate divided by the rate of the landmarks that the booster learned from. The probability of a
quiet drive depends nearly only on that rate, and the probability of a drive with symptoms much less, so each
kind has its own power. Powers, intercepts and the slope of the booster's log odds are fitted together, by
maximum likelihood, on forecasts of drives that the booster had not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.models.forecast.calibration import Calibration, compute_logit

PRIOR: Final = 25.0
"""Number of pseudo-observations by which each fitted number is drawn to its start."""
_START: Final = np.array([0.0, 0.0, 1.0, 1.0, 0.5])
"""Intercept, its change with a symptom, slope, power of a quiet drive, power of a drive with a symptom."""


@dataclass(frozen=True, slots=True)
class BaseRate:
    """The effect of a base rate on log odds.

    The default changes nothing, because older bundles read the family inside the booster.
    """

    reference: float = 1.0
    """Deaths per drive-year of the landmarks that the booster learned from."""
    quiet: float = 0.0
    """The power of the rate divided by `reference`, for the odds of a drive without a symptom."""
    symptomatic: float = 0.0
    """The same power for a drive with a symptom."""
    shift: float = 0.0
    """The number that is added to the log odds of a drive with a symptom."""

    def log_odds(self, rate: NDArray[np.float64], symptom: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the numbers to add to log odds: (drives,). rate: deaths per drive-year. symptom: whether a
        drive has any."""
        power = np.where(symptom, self.symptomatic, self.quiet)
        return np.asarray(power * np.log(rate / self.reference) + np.where(symptom, self.shift, 0.0))


def fit_base_rate(
    p: NDArray[np.float64],
    died: NDArray[np.bool_],
    weight: NDArray[np.float64],
    rate: NDArray[np.float64],
    symptom: NDArray[np.bool_],
) -> tuple[Calibration, BaseRate]:
    """Calibrate probabilities of unseen drives, together with the effect of base rates on them.

    p: (n,) the booster's probabilities. rate: (n,) deaths per drive-year. The fit is weighted maximum
    likelihood by Newton's method, with a Gaussian prior. Powers are kept between 0 and 1, so that a base rate
    counts once at most.
    """
    reference = float(np.exp(np.average(np.log(rate), weights=weight))) if len(rate) else 1.0
    relative, marked = np.log(rate / reference), symptom.astype(np.float64)
    x = np.column_stack(
        [np.ones(len(p)), marked, compute_logit(p), relative * (1 - marked), relative * marked]
    )
    penalty = np.diag(PRIOR * np.array([0.1, 0.1, 1.0, 1.0, 1.0]))
    theta = _START.copy()
    for _ in range(50):
        q = 1.0 / (1.0 + np.exp(-x @ theta))
        gradient = x.T @ (weight * (died - q)) - penalty @ (theta - _START)
        curvature = (x * (weight * q * (1 - q))[:, None]).T @ x + penalty
        step = np.clip(np.linalg.solve(curvature, gradient), -1, 1)
        theta = theta + step
        theta[3:] = np.clip(theta[3:], 0.0, 1.0)
        if np.abs(step).max() < 1e-9:
            break
    shift, more, slope, quiet, symptomatic = (float(each) for each in theta)
    return Calibration(shift, max(slope, 0.05)), BaseRate(reference, quiet, symptomatic, more)
