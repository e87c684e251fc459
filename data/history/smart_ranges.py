"""The range of each SMART value. Values that vendors pack into one integer are decoded; impossible ones are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

_COUNTED: Final = 2**32 - 2
"""Largest count. All bits set means "nothing here", and so does one less (Seagate's 7200.11 for its pending
sectors)."""

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
"""SMART attributes that are read, and the value above which each is not plausible (9: 20 years; 241, 242: sectors)."""

PACKED: Final = frozenset({188, 194})
"""The attributes of which `decode_plausible_values` keeps a part."""
WORD: Final = 65536.0
HOTTEST: Final = 150.0


def decode_plausible_values(smart_id: int, raw: NDArray[np.float64]) -> tuple[NDArray[np.float64], int, int]:
    """Decode values that vendors pack into one integer, and drop impossible values.

    Attribute 188 keeps its low 16-bit word (all timeouts; the upper words are subsets). Attribute 194 keeps its low
    byte, and a temperature of 0 means that there is no sensor. Return the values, the number of negative values and
    the number of impossibly large ones.
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
    """Apply `decode_plausible_values` to a single value of the stream, without the counts."""
    if not 0 <= raw <= LIMITS[smart_id]:
        return np.nan
    if smart_id == 188:
        return raw % WORD
    if smart_id == 194:
        celsius = raw % 256.0
        return np.nan if celsius == 0 or celsius > HOTTEST else celsius
    return raw
