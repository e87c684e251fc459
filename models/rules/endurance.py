"""When a flash drive's rated life is used up, by the slope of its own wear counter.

Wear is counted in whole percents. Steps seen so far and steps to come are taken for a Poisson process of one unknown
rate (Jeffreys' prior), so the time to come over the time seen has a beta prime distribution: wide while few steps are
known, and wider than a steady load needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from predrain.data.outlook import GRID_DAYS, Life

FEWEST_STEPS: Final = 2
"""Steps of one percent below which the slope is unknown."""
FEWEST_DAYS: Final = 14
"""Days below which the slope is unknown."""
USED_UP: Final = 100


def rated_life(changes: Sequence[tuple[int, int]], day: int) -> Life | None:
    """Days from `day` until 100 % are used: the 10, 50 and 90 % quantile; None beyond the grid of an Outlook.

    changes: (day, percent used) whenever it changed, oldest first; the first pair is where it was first seen.
    None while the slope is unknown, or when nothing of the rated life is left.
    """
    from scipy.special import betaincinv

    since = _since_last_fall(changes)
    if not since or since[-1][1] >= USED_UP:
        return None
    (start, used_then), used = since[0], since[-1][1]
    steps, days = used - used_then, day - start
    if steps < FEWEST_STEPS or days < FEWEST_DAYS:
        return None
    left = USED_UP - used - 0.5  # somewhere within the percent that it shows
    shares = [float(betaincinv(left, steps + 0.5, q)) for q in (0.1, 0.5, 0.9)]
    p10, p50, p90 = (_within_grid(days * share / (1 - share)) for share in shares)
    return Life(p10, p50, p90)


def percent_a_day(changes: Sequence[tuple[int, int]], day: int) -> float:
    """The slope over what is remembered; 0 when it was seen on one day only."""
    since = _since_last_fall(changes)
    return (since[-1][1] - since[0][1]) / (day - since[0][0]) if since and day > since[0][0] else 0.0


def _since_last_fall(changes: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Wear does not go back: what was counted before a fall belongs to another count."""
    falls = [place for place in range(1, len(changes)) if changes[place][1] < changes[place - 1][1]]
    return changes[falls[-1] :] if falls else changes


def _within_grid(days: float) -> float | None:
    return days if days <= GRID_DAYS[-1] else None
