"""What a drive's identity adds to its symptoms: how often drives of its model and age die, beside those learned from.

The booster knows symptoms alone (models.booster_columns). A drive's odds are its booster's odds times a power of its
base rate over the rate of the landmarks that the booster learned from. A quiet drive owes nearly all of its chance to
that rate, and a drive with symptoms much less, so each kind has its own power. Powers, intercepts and the slope of the
booster's log odds are fitted together, by maximum likelihood, on forecasts of drives that the booster had not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.models.calibrate import Calibration, logit

PRIOR: Final = 25.0
"""Pseudo-observations by which each fitted number is drawn to its start."""
_START: Final = np.array([0.0, 0.0, 1.0, 1.0, 0.5])
"""Intercept, its change with a symptom, slope, power of a quiet drive, power of one with a symptom."""


@dataclass(frozen=True, slots=True)
class BaseRate:
    """How a base rate moves log odds. The default moves nothing: older bundles read the family inside the booster."""

    reference: float = 1.0
    """Deaths per drive-year of the landmarks that were learned from."""
    quiet: float = 0.0
    """Power of rate over reference in the odds of a drive without a symptom."""
    symptomatic: float = 0.0
    """The same of a drive with one."""
    shift: float = 0.0
    """Added to the log odds of a drive with a symptom."""

    def log_odds(self, rate: NDArray[np.float64], symptom: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(drives,) what is added to log odds. rate: deaths per drive-year; symptom: whether it has any."""
        power = np.where(symptom, self.symptomatic, self.quiet)
        return np.asarray(power * np.log(rate / self.reference) + np.where(symptom, self.shift, 0.0))


def fit_base_rate(
    p: NDArray[np.float64],
    died: NDArray[np.bool_],
    weight: NDArray[np.float64],
    rate: NDArray[np.float64],
    symptom: NDArray[np.bool_],
) -> tuple[Calibration, BaseRate]:
    """Calibrate chances of unseen drives, together with what base rates add to them.

    p: (n,) the booster's chances. rate: (n,) deaths per drive-year. Weighted maximum likelihood by Newton's method,
    with a Gaussian prior. Powers are kept within 0 and 1: a base rate counts once at most.
    """
    reference = float(np.exp(np.average(np.log(rate), weights=weight))) if len(rate) else 1.0
    relative, marked = np.log(rate / reference), symptom.astype(np.float64)
    x = np.column_stack([np.ones(len(p)), marked, logit(p), relative * (1 - marked), relative * marked])
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
