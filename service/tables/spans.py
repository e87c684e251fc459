"""Numbers that no calendar holds: "for ever" is a century here."""

from __future__ import annotations

import math
from datetime import timedelta

CENTURY = timedelta(days=36_525)


def endless(key: str, value: object) -> str | None:
    """Why the value of `key`, whose end is its unit, cannot be used, with the cure; None where it can."""
    if not isinstance(value, int | float):
        return None
    unit = key.rpartition("_")[2]
    if unit in ("days", "hours", "minutes", "seconds"):
        longest = CENTURY / timedelta(**{unit: 1})
        return None if value <= longest else f"a century, {longest:.0f}, is the longest (given: {value})"
    return None if math.isfinite(value) else f"it must be a number that ends (given: {value})"
