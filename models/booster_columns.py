"""The columns that the booster reads, how missing values are filled, and in which direction each one is worse.

The booster reads what counters and their changes say of any drive. It reads neither maker, model, age, heat nor work:
what those add is the base rate's part (models.base_rate), so that a drive of a model never seen is judged by its
symptoms in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.features.schema import LONG_AGO, POSITION, WINDOWS

MEDIA: Final = (5, 187, 197, 198)
"""SMART attributes that count sectors which a drive could not read or keep."""
INTERVAL: Final = "interval"
"""The last column: which interval after the landmark a hazard is asked for."""


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
"""Stands for "has not risen" among the days since a rise, which end at LONG_AGO."""


def select_columns(x: NDArray[np.float32], columns: Sequence[str], *, fill: bool) -> NDArray[np.float32]:
    """(drives, columns) of (drives, features), by name.

    fill: a counter that a drive does not report reads as one that never left zero, so that a drive which reports
    fewer counters is judged by those that it has. Without it missing values stay NaN.
    """
    selected = x[:, [POSITION[name] for name in columns]].astype(np.float32)
    if fill:
        default = np.array([NEVER_DAYS if "since" in name else 0.0 for name in columns], dtype=np.float32)
        selected = np.where(np.isnan(selected), default, selected)
    return selected


def find_direction(column: str) -> int:
    """1 where a higher value never lowers the chance to fail, -1 where it never raises it, 0 where either may hold.

    Either may hold of the days since a first symptom: the first weeks after it are the worst, and so is its return.
    """
    if column in (INTERVAL, "pending_fallen") or column not in COLUMNS or "_first" in column:
        return 0
    return -1 if "since" in column else 1


def has_symptom(x: NDArray[np.float32]) -> NDArray[np.bool_]:
    """(drives,) whether any of SMART 5, 187, 197, 198 stands above zero. x: (drives, features)."""
    levels = x[:, [POSITION[f"smart_{n}"] for n in MEDIA]]
    return np.asarray((np.nan_to_num(levels) > 0).any(axis=1), dtype=bool)
