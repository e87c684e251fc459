"""Feature vectors of (drive, landmark day) pairs, from a ledger: the same kernel for history and stream."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from predrain.features.ledger import FeatureLedger
from predrain.features.schema import SCHEMA, WINDOWS, LandmarkRows


def rows_at(ledger: FeatureLedger, drive: NDArray[np.int64], day: NDArray[np.int64]) -> NDArray[np.int64]:
    """(pairs,) the row of each drive that holds on that day (its last row dated then or before), -1 when none
    does."""
    key, stride = _keys(ledger)
    at = np.searchsorted(key, drive * stride + day, side="right") - 1
    return np.where(at >= ledger.start[drive], at, -1)


def vectors(ledger: FeatureLedger, drive: NDArray[np.int64], day: NDArray[np.int64]) -> NDArray[np.float32]:
    """Measure every feature. drive, day: (pairs,) each with a row dated on that day or before.

    Returns (pairs, features) in the schema's order; NaN where the drive does not report. Only rows dated on the
    landmark day or before are looked at. Raises ValueError when a drive has no row yet on its day.
    """
    key, stride = _keys(ledger)
    first = ledger.start[drive]
    at = np.searchsorted(key, drive * stride + day, side="right") - 1
    if len(at) and bool((at < first).any()):
        raise ValueError("a drive has no reading on or before its landmark day")
    landmark = day.astype(np.float64)
    dated = ledger.rows["day"]
    back: dict[int, NDArray[np.int64]] = {}
    span: dict[int, NDArray[np.float64]] = {}
    for window in WINDOWS:
        then = np.searchsorted(key, drive * stride + day - window, side="right") - 1
        back[window] = np.maximum(then, first)
        span[window] = np.clip(landmark - dated[back[window]], 1.0, float(window))
    held = LandmarkRows(ledger.rows, at, back, landmark, span)
    matrix = np.empty((len(at), len(SCHEMA)), dtype=np.float32)
    with np.errstate(invalid="ignore"):
        for column, feature in enumerate(SCHEMA):
            matrix[:, column] = feature.measure(held)
    return matrix


def _keys(ledger: FeatureLedger) -> tuple[NDArray[np.int64], int]:
    """Rows as one ascending key over (drive, day), and the step from drive to drive."""
    stride = 1 << 20
    drive = np.repeat(np.arange(len(ledger.start) - 1, dtype=np.int64), np.diff(ledger.start))
    return drive * stride + ledger.rows["day"].astype(np.int64), stride
