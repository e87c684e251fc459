"""Feature vectors of (drive, landmark day) pairs, from accumulated rows, by the same kernel for history and stream."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from predrain.features.drive_history_rows import FeatureLedger
from predrain.features.feature_schema import SCHEMA, WINDOWS, LandmarkRows


def rows_at(ledger: FeatureLedger, drive: NDArray[np.int64], day: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each pair the last row of the drive dated on that day or before: (pairs,), -1 without one."""
    key, stride = _build_row_keys(ledger)
    at = np.searchsorted(key, drive * stride + day, side="right") - 1
    return np.where(at >= ledger.start[drive], at, -1)


def compute_feature_vectors(
    ledger: FeatureLedger, drive: NDArray[np.int64], day: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Measure every feature. drive, day: (pairs,) each with a row dated on that day or before.

    Return (pairs, features) in the schema's order, NaN where the drive does not report the value. Only rows
    dated on the landmark day or before are used. Raises ValueError when a drive has no row yet on its day.
    """
    key, stride = _build_row_keys(ledger)
    first = ledger.start[drive]
    at = np.searchsorted(key, drive * stride + day, side="right") - 1
    if len(at) and bool((at < first).any()):
        raise ValueError("a drive has no reading on or before its landmark day")
    back: dict[int, NDArray[np.int64]] = {}
    for window in WINDOWS:
        then = np.searchsorted(key, drive * stride + day - window, side="right") - 1
        back[window] = np.maximum(then, first)
    return measure_features(LandmarkRows(ledger.rows, at, back, day.astype(np.float64)))


def measure_features(held: LandmarkRows) -> NDArray[np.float32]:
    """Measure every feature of the (pairs,) landmarks. Return (pairs, features) in the schema's order."""
    matrix = np.empty((len(held.day), len(SCHEMA)), dtype=np.float32)
    with np.errstate(invalid="ignore"):
        for column, feature in enumerate(SCHEMA):
            matrix[:, column] = feature.measure(held)
    return matrix


def _build_row_keys(ledger: FeatureLedger) -> tuple[NDArray[np.int64], int]:
    """Return an ascending key over (drive, day) for all rows, and the step of the key from drive to drive."""
    stride = 1 << 20
    drive = np.repeat(np.arange(len(ledger.start) - 1, dtype=np.int64), np.diff(ledger.start))
    return drive * stride + ledger.rows["day"].astype(np.int64), stride
