"""What a SMART value may be: decoded where vendors pack several into one, not reported where it cannot be true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

_COUNTED: Final = 2**32 - 2
"""All ones are "nothing here", or one less than none (Seagate's 7200.11 of their pending sectors)."""

LIMITS: Final[Mapping[int, float]] = {
    5: _COUNTED,
    9: 20 * 365.25 * 24,
    10: _COUNTED,
    12: 1e6,
    187: _COUNTED,
    188: 2**48,
    189: _COUNTED,
    193: 1e8,
    194: 2**48,
    196: _COUNTED,
    197: _COUNTED,
    198: _COUNTED,
    199: _COUNTED,
    241: 2**43,
    242: 2**43,
}
"""SMART attributes that are read, and the value at which each stops being believable (9: 20 years; 241, 242:
sectors)."""

WORD: Final = 65536.0
HOTTEST: Final = 150.0


def believable(smart_id: int, raw: NDArray[np.float64]) -> tuple[NDArray[np.float64], int, int]:
    """Decode what vendors pack into one integer and drop what cannot be true.

    188 keeps its low 16-bit word (all timeouts; the upper words are subsets), 194 its low byte, and a temperature of
    0 means that there is no sensor. Returns the values, how many were negative and how many absurd.
    """
    negative = raw < 0
    absurd = raw > LIMITS[smart_id]
    value = np.where(negative | absurd, np.nan, raw)
    if smart_id == 188:
        value = np.mod(value, WORD)
    elif smart_id == 194:
        value = np.mod(value, 256.0)
        value = np.where((value == 0) | (value > HOTTEST), np.nan, value)
    return value, int(np.count_nonzero(negative)), int(np.count_nonzero(absurd))


def believable_one(smart_id: int, raw: float) -> float:
    """`believable` for a single value, without its counts: the stream's way through the same rule."""
    if not 0 <= raw <= LIMITS[smart_id]:
        return np.nan
    if smart_id == 188:
        return raw % WORD
    if smart_id == 194:
        celsius = raw % 256.0
        return np.nan if celsius == 0 or celsius > HOTTEST else celsius
    return raw
