"""Names of the array types that the protocol uses, and steps on sorted arrays that many of its files share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Texts = NDArray[np.object_]

DAY_BITS = 20
"""A drive and a day are one sortable integer: drive << DAY_BITS | day, days since 1970-01-01."""


def drive_day(drive: Ints, day: Ints | int) -> Ints:
    """Return one sortable integer for each drive and day."""
    return (drive << DAY_BITS) | day


def weighted_quantile(values: Floats, weights: Floats, shares: tuple[float, ...]) -> tuple[float, ...]:
    """Return for each share the smallest value with at least this share of the weight at or below it; NaN
    without weight."""
    if weights.sum() <= 0:
        return tuple(float("nan") for _ in shares)
    order = np.argsort(values, kind="stable")
    running = np.cumsum(weights[order])
    places = np.searchsorted(running, np.asarray(shares) * running[-1])
    return tuple(float(values[order][min(place, len(values) - 1)]) for place in places)
