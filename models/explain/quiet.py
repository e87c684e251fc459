"""A drive some quiet days later: nothing rises, it works on as before, and pending sectors may be rewritten.

Forecasting that vector answers what would clear a flag, instead of promising it.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.features.schema import LONG_AGO, NAMES_IN_ORDER, POSITION

_STILL: Final = re.compile(r"smart_\d+_(up_\d+d|rises_30d|net_30d)|rising_\d+d|sectors_up_7d")
_SINCE: Final = re.compile(r"smart_\d+_since_(rise|first)|since_any_(rise|first)")
STILL: Final = [i for i, name in enumerate(NAMES_IN_ORDER) if _STILL.fullmatch(name)]
SINCE: Final = [i for i, name in enumerate(NAMES_IN_ORDER) if _SINCE.fullmatch(name)]


def quiet(x: NDArray[np.float32], days: int, *, rewritten: bool = False) -> NDArray[np.float32]:
    """(drives, features) after `days` (30 or more) without a rise; rewritten: and without a pending sector left."""
    later = x.copy()
    later[:, STILL] = np.where(np.isnan(x[:, STILL]), np.nan, 0.0)
    later[:, SINCE] = np.minimum(x[:, SINCE] + days, LONG_AGO)
    later[:, POSITION["hours"]] += 24.0 * days
    if rewritten:
        pending, offline = (
            np.nan_to_num(x[:, POSITION["smart_197"]]),
            np.nan_to_num(x[:, POSITION["smart_198"]]),
        )
        later[:, POSITION["symptoms"]] -= (pending > 0).astype(np.float32) + (offline > 0).astype(np.float32)
        later[:, POSITION["pending_fallen"]] += pending
        for name in ("smart_197", "smart_198"):
            level = x[:, POSITION[name]]
            later[:, POSITION[name]] = np.where(np.isnan(level), np.nan, 0.0)
            if days <= 30:  # the fall lies within the month that is looked back on
                later[:, POSITION[f"{name}_net_30d"]] = -level
    return later
