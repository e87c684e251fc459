"""The day on which a flash drive's rated life is used up, by the slope of its own wear counter.

Wear is counted in whole per cent. Past and future steps are modelled as a Poisson process of one unknown rate
(Jeffreys' prior), so the remaining time divided by the time seen has a beta prime distribution. The distribution is
wide while few steps are known, and wider than a steady load needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from predrain.data.outlook import GRID_DAYS, Life

FEWEST_STEPS: Final = 2
"""Number of steps of one per cent below which the slope is unknown."""
FEWEST_DAYS: Final = 14
"""Number of days below which the slope is unknown."""
USED_UP: Final = 100
_GRID: Final = 2048
"""Number of intervals over which a density is summed."""


def rated_life(changes: Sequence[tuple[int, int]], day: int) -> Life | None:
    """Return the 10, 50 and 90 % quantile of the days from `day` until 100 % are used; None beyond the grid of an
    Outlook.

    changes: (day, per cent used) at each change, oldest first; the first pair is the first observation. Return None
    while the slope is unknown, or when nothing of the rated life is left.
    """
    since = _since_last_fall(changes)
    if not since or since[-1][1] >= USED_UP:
        return None
    (start, used_then), used = since[0], since[-1][1]
    steps, days = used - used_then, day - start
    if steps < FEWEST_STEPS or days < FEWEST_DAYS:
        return None
    left = USED_UP - used - 0.5  # the true value lies within the per cent that it shows
    shares = compute_beta_quantiles(left, steps + 0.5)
    p10, p50, p90 = (_within_grid(days * share / (1 - share)) for share in shares)
    return Life(p10, p50, p90)


@lru_cache(maxsize=8192)
def compute_beta_quantiles(a: float, b: float) -> tuple[float, ...]:
    """Compute the 10, 50 and 90 % quantile of a beta distribution, to 1e-5. a, b: one half and more, below 200.

    The share is the square of a sine, so that the density has no pole. The result is that of
    `scipy.special.betaincinv`, whose import takes 32 MB of every service that has a flash drive.
    """
    import numpy as np

    angle = (np.arange(_GRID) + 0.5) * (np.pi / 2 / _GRID)
    log = (2 * a - 1) * np.log(np.sin(angle)) + (2 * b - 1) * np.log(np.cos(angle))
    below = np.concatenate([[0.0], np.cumsum(np.exp(log - log.max()))])
    edges = np.arange(_GRID + 1) * (np.pi / 2 / _GRID)
    at = np.interp((0.1, 0.5, 0.9), below / below[-1], edges)
    return tuple(float(share) for share in np.sin(at) ** 2)


def percent_a_day(changes: Sequence[tuple[int, int]], day: int) -> float:
    """Return the slope over the remembered changes, or 0 if the wear was seen on one day only."""
    since = _since_last_fall(changes)
    return (since[-1][1] - since[0][1]) / (day - since[0][0]) if since and day > since[0][0] else 0.0


def _since_last_fall(changes: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Return the changes since the last fall. Wear does not go back, so an earlier value belongs to another count."""
    falls = [place for place in range(1, len(changes)) if changes[place][1] < changes[place - 1][1]]
    return changes[falls[-1] :] if falls else changes


def _within_grid(days: float) -> float | None:
    return days if days <= GRID_DAYS[-1] else None
