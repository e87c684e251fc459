"""How a drive model has died lately, against what its drives' own forecasts said.

A model that has begun to die (an age, a batch, a bad firmware, an operator who retires it) does so within weeks, and
its drives need not show a symptom. So each model's deaths of the last months, by forecasts of boosters that had not
seen the drives, are counted over those expected of it, relative to all drives' ratio, and drawn to 1 as by PRIOR
deaths (Gamma prior). The ratio multiplies the odds of the model's drives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.models.calibrate import WINDOW
from predrain.models.family import normalize_model
from predrain.models.landmarks import Landmarks

HALF_LIFE: Final = 90.0
"""Days after which what a model did counts half."""
PRIOR: Final = 2.0
"""Deaths that the prior counts for."""


def lately_of(landmarks: Landmarks, p_30d: NDArray[np.float64], step: int) -> dict[str, float]:
    """Model -> how many times as often as forecast its drives died lately.

    p_30d: (landmarks,) chances of boosters that had not seen the drive. step: days between a drive's landmarks, as
    many of which tell of one death. A landmark that was watched for less than WINDOW days counts for those days.
    """
    days = np.minimum(landmarks.follow, WINDOW)
    weight = landmarks.aged(HALF_LIFE) * step / WINDOW
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
    """(drives,) what is added to the log odds of each drive; 0 for a model that nothing is known of."""
    names, at = np.unique(model.astype(str), return_inverse=True)
    table = np.log(np.array([times_lately(lately, str(name)) for name in names]))
    return table[at] if len(names) else np.zeros(0)


def times_lately(lately: Mapping[str, float], model: str) -> float:
    """How many times as often as forecast this model's drives died lately; 1 for one that nothing is known of."""
    return lately.get(model) or lately.get(normalize_model(model), 1.0)
