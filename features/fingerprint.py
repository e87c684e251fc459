"""Fingerprints of features: a hash of the values that each feature has on one fixed history.

A description does not say everything: a window, a source counter or a transformation can change while the
words stay. A fingerprint is made of measured values, so it changes with each of them, and with the recursion
of `features.drive_history_rows`. A bundle stores the fingerprints of the features that it uses. It refuses to forecast
from features that are measured otherwise (decision 0045).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.history import History
from predrain.features.drive_history_rows import LEVELS, Floats, ledger_of
from predrain.features.feature_schema import NAMES_IN_ORDER
from predrain.features.feature_vectors import compute_feature_vectors

DIGITS: Final = 16
"""Hexadecimal digits of a fingerprint."""
_DRIVES: Final = 16
_DAYS: Final = 240
"""Days of the fixed history; longer than the 90 days at which "long ago" begins."""
_FIRST: Final = 17_000
_LANDMARKS: Final = (0, 2, *range(9, _DAYS, 13), _DAYS - 1)


def hash_measurements(names: Iterable[str]) -> dict[str, str]:
    """Return the fingerprint of each of these features. Raises KeyError for a name that no feature has."""
    known = _hash_all()
    return {name: known[name] for name in names}


@cache
def _hash_all() -> Mapping[str, str]:
    drive, on = np.meshgrid(np.arange(_DRIVES), np.array(_LANDMARKS) + _FIRST, indexing="ij")
    values = compute_feature_vectors(ledger_of(make_fixed_history()), drive.ravel(), on.ravel())
    return {name: _hash(values[:, place]) for place, name in enumerate(NAMES_IN_ORDER)}


def _hash(values: NDArray[np.float32]) -> str:
    # Six digits: machines may round the last bit of a quotient differently, and that does not change the
    # definition.
    text = ",".join(f"{value + 0.0:.6g}" for value in values.tolist())
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def make_fixed_history() -> History:
    """Make a history of drives with rises, falls, gaps and unreported values, by whole-number arithmetic alone.

    The history must never change, because then every bundle would be refused.
    """
    drive = np.repeat(np.arange(_DRIVES), _DAYS)
    day = np.tile(np.arange(_DAYS), _DRIVES)
    # Every drive has a row on its first day. After it each drive lacks different days.
    kept = (day == 0) | ((day * 7 + drive * 3) % 11 > drive % 4)
    drive, day = drive[kept], day[kept]
    start = np.searchsorted(drive, np.arange(_DRIVES + 1)).astype(np.int64)
    return History(
        serials=np.array([f"F{number:02}" for number in range(_DRIVES)], dtype=object),
        start=start,
        day=(day + _FIRST).astype(np.int32),
        model=np.zeros(len(day), dtype=np.int32),
        model_names=("FIXED",),
        raw={n: _make_counter(n, drive, day) for n in LEVELS},
    )


def _make_counter(n: int, drive: NDArray[np.int64], day: NDArray[np.int64]) -> Floats:
    """Compute the values of one SMART attribute for every row. n: the SMART id; each attribute gets different
    values."""
    if n == 9:
        values = 24 * day + 500 * drive + 3
    elif n == 194:
        values = 25 + (day * (drive + 2) + drive * 5) % 17
    else:
        # Begin, end and rate of the rises differ by attribute and drive. So every window holds a different
        # sum, and some drives are quiet for a long time before or after.
        begins, lasts = (n * 13 + drive * 29) % 200, 5 + (n * 11 + drive * 17) % 90
        early = drive % 8 == 3  # nothing rises in the last 100 days of these drives
        begins = np.where(early, begins % 40, begins)
        steps = np.clip(day - begins, 0, lasts)
        values = (steps // (1 + (n * 5 + drive * 7) % 11)) * (1 + (n + drive) % 9) + steps**2 // (n + 7)
        # The count falls back for some days.
        values = np.where(~early & ((day + n + drive * 7) % 37 < drive % 9), values // 2, values)
        if n in (193, 241, 242):
            # The drive works much on one day, which is the day before one of the landmarks.
            values = values + day * (drive + 1) + 4_000 * (day >= 13 * drive + 21)
            values = values * (1 if n == 193 else 2_000_003)
    missing = ((day * 3 + n + drive) % 19 == 0) | ((n + drive) % 13 == 4)
    return np.where(missing, np.nan, values.astype(np.float64))
