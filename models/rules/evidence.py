"""Fuzzy evidence: signs with degrees, and the one rule by which they are combined.

The strongest sign counts in full and every other by half (a noisy-or with discounted support): signs of one drive
seldom come about by themselves, and counting them in full would double what they share. Of signs with one cause only
the strongest counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from predrain.data.outlook import Advice, Reason, Status

WARNING: Final = 0.4
"""Score from which on a drive is warned of."""
BAD: Final = 0.8
"""Score from which on a drive is bad."""
NOTED: Final = 0.2
"""Degree from which on a sign is worth watching, though it be no warning."""
SUPPORT: Final = 0.5
"""What a further sign counts beside the strongest."""


@dataclass(frozen=True, slots=True)
class Sign:
    """One thing that speaks against a drive."""

    rule: str
    degree: float
    """0 (says nothing) to 1 (the drive says so itself)."""
    cause: str
    """Signs with one cause are one witness."""
    reason: Reason
    advice: Advice
    clears: str
    hard: bool = False
    """Hard evidence, of which the guards ask for fewer readings."""
    forecast: bool = False
    """The forecast of hard disks weighs the same counter."""
    noted: bool = False
    """Never nothing to do, however low the degree: errors are added while the drive is watched, or it stands among
    the worst of its kind."""


def ordered(signs: Iterable[Sign]) -> tuple[Sign, ...]:
    """The most telling first."""
    return tuple(sorted(signs, key=lambda sign: -sign.degree))


def score_of(signs: Iterable[Sign]) -> float:
    """The signs' score in [0, 1]: at least the strongest degree, never lower for a further sign."""
    strongest: dict[str, float] = {}
    for sign in signs:
        strongest[sign.cause] = max(strongest.get(sign.cause, 0.0), sign.degree)
    first, *others = sorted(strongest.values(), reverse=True) or [0.0]
    unsupported = math.prod(1.0 - SUPPORT * degree for degree in others)
    return first + (1.0 - first) * (1.0 - unsupported)


def status_of(score: float) -> Status:
    """By the two cut-offs."""
    return Status.BAD if score >= BAD else Status.WARNING if score >= WARNING else Status.GOOD
