"""Thresholds that follow a fleet's own scores, so that `warning` and `bad` keep the false-alarm rates that they name.

A chance that 1 in 1,000 healthy disks of one fleet and year reached in a month is reached by more or fewer of another
fleet, or a year later, although the ranking of the disks is as good: over five quarters without a training the false
alarms of a frozen threshold fell to a tenth of what was meant. So each threshold is taken from what the healthy disks
of this fleet reached in the last days, and as long as these are few it is drawn to the bundle's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.lifespan import Lifespans
from predrain.data.scorebook import ScorebookForecasts
from predrain.models.calibrate import BAD_RATE, WARNING_RATE, WINDOW, Thresholds

FOLLOWED_DAYS: Final = 90
"""Days before today whose scores are taken."""
AGING: Final = 0.5
"""Weight of a month beside the month after it: scores of a fleet that ages fell by a tenth a month."""
WATCHED_DAYS: Final = 21
"""Days of a window that lie between a disk's first and last forecast in it, at least: a disk that was scored for a
week reaches less than one that was scored for a month."""
PRIOR_ALARMS: Final = 1.0
"""False alarms, expected at a threshold's rate, that the bundle's own threshold counts for. A bundle's threshold was
off by a factor of three in odds after a year, and the score that ten alarms reach is known to a tenth."""
MOST_SHIFT: Final = math.log(32.0)
"""Log odds by which a threshold may leave the bundle's own: a fleet without any ill disk must not call its best disks
ill, and one in a bad month must not grow silent."""


@dataclass(frozen=True, slots=True)
class FollowedThresholds:
    """Thresholds, and how much of a fleet they rest on."""

    thresholds: Thresholds
    disk_months: float
    """Healthy windows of WINDOW days: 0 is the bundle's own threshold, whatever the fleet."""


def follow_thresholds(
    book: ScorebookForecasts, ends: Lifespans, shipped: Thresholds, today: int
) -> FollowedThresholds:
    """Thresholds after what the disks of a fleet reached in the FOLLOWED_DAYS before `today` (days since 1970-01-01).

    book: forecasts of one bundle. ends: by device id, as far as they are known. A disk that died within WINDOW days
    of a forecast is not healthy. One whose end is not known (it was drained, or the month is not over) counts as
    healthy by its own chance to live on, so that draining the worst disks does not lower the threshold.
    """
    book = book.only((book.day > today - FOLLOWED_DAYS) & (book.day <= today))
    if not len(book):
        return FollowedThresholds(shipped, 0.0)
    score, healthy, ago = _worst_of_windows(book, ends, today)
    months = float(healthy.sum())
    healthy *= AGING**ago
    warning = _follow(score, healthy, WARNING_RATE, shipped.warning)
    bad = _follow(score, healthy, BAD_RATE, shipped.bad)
    return FollowedThresholds(Thresholds(warning=min(warning, bad), bad=bad), months)


def _worst_of_windows(
    book: ScorebookForecasts, ends: Lifespans, today: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Of each disk's windows the highest chance within 30 days, how healthy the disk was then, 0 to 1, and how many
    windows ago it was."""
    drive = np.cumsum(np.concatenate([[0], book.device[1:] != book.device[:-1]]))
    # The last window ends today. Rows are sorted by device and day, so that the rows of a window stand together.
    back = (today - book.day) // WINDOW
    window = drive * (FOLLOWED_DAYS // WINDOW + 1) - back
    first = np.flatnonzero(np.concatenate([[True], window[1:] != window[:-1]]))
    last = np.append(first[1:], len(book)) - 1
    at = ends.of(book.device[first])
    there = (at >= 0) & (len(ends.last) > 0)
    end = np.where(there, ends.last[at], -1) if len(ends.last) else np.full(len(first), -1)
    died = np.where(there, ends.died[at], False) if len(ends.died) else np.zeros(len(first), dtype=bool)
    score = np.maximum.reduceat(book.p[:, 2], first)
    until = book.day[last]
    healthy = np.where(end >= until + WINDOW, 1.0, 1.0 - score)
    healthy[died & (end <= until + WINDOW)] = 0.0
    watched = until - book.day[first] >= WATCHED_DAYS
    return score[watched], healthy[watched], back[first][watched]


def _follow(score: NDArray[np.float64], healthy: NDArray[np.float64], rate: float, shipped: float) -> float:
    own = _reached(score, healthy, rate)
    if own is None:
        return shipped
    alarms = rate * float(healthy.sum())
    shift = (_log_odds(own) - _log_odds(shipped)) * alarms / (alarms + PRIOR_ALARMS)
    odds = _log_odds(shipped) + min(max(shift, -MOST_SHIFT), MOST_SHIFT)
    return 1.0 / (1.0 + math.exp(-odds))


def _reached(score: NDArray[np.float64], healthy: NDArray[np.float64], rate: float) -> float | None:
    """The score that the share `rate` of healthy windows reaches. Where many stand on one score, and twice the rate
    would be called, the next higher one; None where there is none."""
    values, place = np.unique(score, return_inverse=True)
    reach = np.cumsum(np.bincount(place, healthy)[::-1])[::-1] if len(values) else np.zeros(0)
    wanted = max(rate * float(healthy.sum()), 1.0)
    enough = np.flatnonzero(reach >= wanted)
    if not len(enough):
        return None
    chosen = int(enough[-1])
    if reach[chosen] > 2 * wanted:
        chosen += 1
    return float(values[chosen]) if chosen < len(values) else None


def _log_odds(p: float) -> float:
    safe = min(max(p, 1e-9), 1 - 1e-9)
    return math.log(safe / (1 - safe))
