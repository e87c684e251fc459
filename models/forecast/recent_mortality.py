"""The latest mortality of each drive model, compared with its drives' own forecasts.

A model can begin to die within weeks (age, a bad batch or firmware, retirement by an operator), and its drives
need not show a symptom. So each model's deaths of the last months are divided by those expected from forecasts of
boosters that had not seen the drives. The ratio is taken relative to the ratio of all drives, and drawn to 1 as by
PRIOR deaths (Gamma prior). It multiplies the odds of the model's drives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.models.forecast.calibration import WINDOW
from predrain.models.forecast.drive_family import normalize_model
from predrain.models.forecast.landmarks import Landmarks

HALF_LIFE: Final = 90.0
"""Days after which an observation of a model counts half."""
PRIOR: Final = 2.0
"""Number of deaths that the prior counts for."""


def measure_recent_mortality(landmarks: Landmarks, p_30d: NDArray[np.float64], step: int) -> dict[str, float]:
    """Return model -> how many times as often as forecast its drives died in the last months.

    p_30d: (landmarks,) probabilities by boosters that had not seen the drive. step: days between a drive's
    landmarks, so WINDOW / step landmarks see the same death. A landmark that was watched for less than WINDOW days
    counts for those days.
    """
    days = np.minimum(landmarks.follow, WINDOW)
    weight = landmarks.compute_decayed_weights(HALF_LIFE) * step / WINDOW
    expected = weight * -np.log1p(-p_30d) * days / WINDOW
    observed = weight * (landmarks.died & (landmarks.follow <= WINDOW))
    raw, at = np.unique(landmarks.model.astype(str), return_inverse=True)
    names, family = np.unique([normalize_model(str(name)) for name in raw], return_inverse=True)
    model = family[at]
    died = np.bincount(model, observed, minlength=len(names))
    foretold = np.bincount(model, expected, minlength=len(names))
    level = died.sum() / foretold.sum() if foretold.sum() > 0 and died.sum() > 0 else 1.0
    ratio = (died / level + PRIOR) / (foretold + PRIOR)
    return {str(name): float(times) for name, times in zip(names, ratio, strict=True)}


def log_odds(lately: Mapping[str, float], model: NDArray[np.object_]) -> NDArray[np.float64]:
    """Return the numbers to add to the log odds of the drives: (drives,), 0 for a model without data."""
    names, at = np.unique(model.astype(str), return_inverse=True)
    table = np.log(np.array([find_mortality_ratio(lately, str(name)) for name in names]))
    return table[at] if len(names) else np.zeros(0)


def find_mortality_ratio(lately: Mapping[str, float], model: str) -> float:
    """Return how many times as often as forecast this model's drives died in the last months, or 1 without data."""
    return lately.get(model) or lately.get(normalize_model(model), 1.0)
