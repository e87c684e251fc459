"""Fuzzy evidence: signs with degrees, and the one rule that combines them.

The strongest sign counts in full and every other by half (a noisy-or with discounted support). The signs of one
drive are seldom independent, and counting them in full would double what they share. Only the strongest of the
signs with one cause counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from predrain.data.outlook import Advice, Reason, Status

WARNING: Final = 0.4
"""Score from which on a drive gets a warning."""
BAD: Final = 0.8
"""Score from which on a drive is bad."""
NOTED: Final = 0.2
"""Degree from which on a sign is worth watching, even if it is no warning."""
SUPPORT: Final = 0.5
"""The weight of a further sign beside the strongest."""


@dataclass(frozen=True, slots=True)
class DefectSign:
    """One piece of evidence against a drive."""

    rule: str
    degree: float
    """0 (no evidence) to 1 (the drive itself reports the failure)."""
    cause: str
    """Signs with one cause count as one."""
    reason: Reason
    advice: Advice
    clears: str
    hard: bool = False
    """Hard evidence, for which the guards ask for fewer readings."""
    forecast: bool = False
    """True if the forecast of hard disks weighs the same counter."""
    noted: bool = False
    """True if the advice is never "nothing", however low the degree.

    Either errors are added while the drive is watched, or the drive is among the worst of its kind.
    """


def sort_by_degree(signs: Iterable[DefectSign]) -> tuple[DefectSign, ...]:
    """Sort signs by degree, the strongest first."""
    return tuple(sorted(signs, key=lambda sign: -sign.degree))


def score_of(signs: Iterable[DefectSign]) -> float:
    """Return the signs' score in [0, 1]: at least the strongest degree, never lower for a further sign."""
    strongest: dict[str, float] = {}
    for sign in signs:
        strongest[sign.cause] = max(strongest.get(sign.cause, 0.0), sign.degree)
    first, *others = sorted(strongest.values(), reverse=True) or [0.0]
    unsupported = math.prod(1.0 - SUPPORT * degree for degree in others)
    return first + (1.0 - first) * (1.0 - unsupported)


def status_of(score: float) -> Status:
    """Return the status of a score by the limits BAD and WARNING."""
    return Status.BAD if score >= BAD else Status.WARNING if score >= WARNING else Status.GOOD
