"""The columns that the booster reads, how missing values are filled, and in which direction each column is worse.

The booster reads counters and their changes, which mean the same on any drive. It reads neither maker, model, age,
heat nor work: their effect belongs to the base rate (models.forecast.base_rate), so that a drive of a model
never seen is judged by its symptoms in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.features.feature_schema import LONG_AGO, POSITION, WINDOWS

MEDIA: Final = (5, 187, 197, 198)
"""SMART attributes that count sectors which a drive could not read or keep."""
INTERVAL: Final = "interval"
"""The last column: the interval after the landmark for which a hazard is asked."""


def _list_columns() -> tuple[str, ...]:
    names: list[str] = []
    for n in MEDIA:
        names.append(f"smart_{n}")
        names += [f"smart_{n}_up_{window}d" for window in WINDOWS]
        names += [f"smart_{n}_since_rise", f"smart_{n}_since_first", f"smart_{n}_rises_30d"]
    names += ["symptoms", "rising_7d", "rising_30d", "since_any_rise", "since_any_first"]
    names += ["sectors_up_7d", "pending_fallen"]
    names += [f"smart_{n}{suffix}" for n in (10, 196, 199) for suffix in ("", "_up_30d")]
    names += ["smart_188", "smart_188_up_7d", "smart_188_up_30d"]
    return tuple(names)


COLUMNS: Final = _list_columns()
NEVER_DAYS: Final = 2 * LONG_AGO
"""Means "has not risen" in the columns of days since a rise, whose values end at LONG_AGO."""


def select_columns(x: NDArray[np.float32], columns: Sequence[str], *, fill: bool) -> NDArray[np.float32]:
    """Select columns by name: (drives, columns) of (drives, features).

    fill: a counter that a drive does not report reads as one that never left zero. So a drive that reports
    fewer counters is judged by those that it has. Without `fill`, missing values stay NaN.
    """
    selected = x[:, [POSITION[name] for name in columns]].astype(np.float32)
    if fill:
        default = np.array([NEVER_DAYS if "since" in name else 0.0 for name in columns], dtype=np.float32)
        selected = np.where(np.isnan(selected), default, selected)
    return selected


def find_direction(column: str) -> int:
    """Return 1 if a higher value never lowers the probability of failure, -1 if it never raises it, 0 if
    either may hold.

    Either may hold for the days since a first symptom: the first weeks after it are the worst, and so is its
    return.
    """
    if column in (INTERVAL, "pending_fallen") or column not in COLUMNS or "_first" in column:
        return 0
    return -1 if "since" in column else 1


def has_symptom(x: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return for each drive whether any of SMART 5, 187, 197, 198 is above zero: (drives,). x: (drives, features)."""
    levels = x[:, [POSITION[f"smart_{n}"] for n in MEDIA]]
    return np.asarray((np.nan_to_num(levels) > 0).any(axis=1), dtype=bool)
