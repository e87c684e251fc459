"""Thresholds that follow a fleet's own scores, so that `warning` and `bad` keep the false-alarm rates that they name.

Take a probability that 1 in 1,000 healthy disks of one fleet reached in a month. In another fleet, or a year later,
more or fewer healthy disks reach it, although the ranking of the disks is as good. Over five quarters without a
training the false alarms of a frozen threshold fell to a tenth of the intended rate. So each threshold is computed
from the highest scores of this fleet's healthy disks in the last days. While these are few, it is drawn to the
bundle's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.lifespan import Lifespans
from predrain.data.scorebook import ScorebookForecasts
from predrain.models.forecast.calibration import BAD_RATE, WARNING_RATE, WINDOW, Thresholds

FOLLOWED_DAYS: Final = 90
"""Days before today whose scores are used."""
AGING: Final = 0.5
"""Weight of a month relative to the next month: scores of an ageing fleet fell by a tenth a month."""
WATCHED_DAYS: Final = 21
"""Smallest number of days between a disk's first and last forecast in a window that counts.

The highest score of a disk that was scored for a week is lower than that of one that was scored for a month.
"""
PRIOR_ALARMS: Final = 1.0
"""Number of expected false alarms that the bundle's own threshold counts for.

A bundle's threshold was wrong by a factor of three in odds after a year, and the score that ten alarms reach is
known to a tenth.
"""
MOST_SHIFT: Final = math.log(32.0)
"""Largest difference in log odds between a threshold and the bundle's own.

A fleet without any ill disk must not call its best disks ill, and a fleet in a bad month must not stop its alarms.
"""


@dataclass(frozen=True, slots=True)
class FollowedThresholds:
    """Thresholds, and the amount of data behind them."""

    thresholds: Thresholds
    disk_months: float
    """Number of healthy windows of WINDOW days. If it is 0, the thresholds are the bundle's own."""


def follow_thresholds(
    book: ScorebookForecasts, ends: Lifespans, shipped: Thresholds, today: int
) -> FollowedThresholds:
    """Compute thresholds from the scores of a fleet's disks in the FOLLOWED_DAYS before `today` (days since
    1970-01-01).

    book: forecasts of one bundle. ends: by device id, as far as they are known. A disk that died within WINDOW days
    of a forecast is not healthy. The end of a disk is unknown if it was drained, or if the month is not over. Such
    a disk counts as healthy by its own probability to live on, so that draining the worst disks does not lower the
    threshold.
    """
    book = book.select_lines((book.day > today - FOLLOWED_DAYS) & (book.day <= today))
    if not len(book):
        return FollowedThresholds(shipped, 0.0)
    score, healthy, ago = _worst_of_windows(book, ends, today)
    months = float(healthy.sum())
    healthy *= AGING**ago
    warning = _follow_threshold(score, healthy, WARNING_RATE, shipped.warning)
    bad = _follow_threshold(score, healthy, BAD_RATE, shipped.bad)
    return FollowedThresholds(Thresholds(warning=min(warning, bad), bad=bad), months)


def _worst_of_windows(
    book: ScorebookForecasts, ends: Lifespans, today: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return three arrays with one entry for each window of a disk.

    The arrays are the highest probability within 30 days, how healthy the disk was then (0 to 1), and how many windows
    ago it was.
    """
    drive = np.cumsum(np.concatenate([[0], book.device[1:] != book.device[:-1]]))
    # The last window ends today. Rows are sorted by device and day, so the rows of a window are adjacent.
    back = (today - book.day) // WINDOW
    window = drive * (FOLLOWED_DAYS // WINDOW + 1) - back
    first = np.flatnonzero(np.concatenate([[True], window[1:] != window[:-1]]))
    last = np.append(first[1:], len(book)) - 1
    at = ends.find_positions(book.device[first])
    there = (at >= 0) & (len(ends.last) > 0)
    end = np.where(there, ends.last[at], -1) if len(ends.last) else np.full(len(first), -1)
    died = np.where(there, ends.died[at], False) if len(ends.died) else np.zeros(len(first), dtype=bool)
    score = np.maximum.reduceat(book.p[:, 2], first)
    until = book.day[last]
    healthy = np.where(end >= until + WINDOW, 1.0, 1.0 - score)
    healthy[died & (end <= until + WINDOW)] = 0.0
    watched = until - book.day[first] >= WATCHED_DAYS
    return score[watched], healthy[watched], back[first][watched]


def _follow_threshold(
    score: NDArray[np.float64], healthy: NDArray[np.float64], rate: float, shipped: float
) -> float:
    own = _find_score_at_rate(score, healthy, rate)
    if own is None:
        return shipped
    alarms = rate * float(healthy.sum())
    shift = (_log_odds(own) - _log_odds(shipped)) * alarms / (alarms + PRIOR_ALARMS)
    odds = _log_odds(shipped) + min(max(shift, -MOST_SHIFT), MOST_SHIFT)
    return 1.0 / (1.0 + math.exp(-odds))


def _find_score_at_rate(
    score: NDArray[np.float64], healthy: NDArray[np.float64], rate: float
) -> float | None:
    """Return the score that the share `rate` of healthy windows reaches.

    If many windows have that score and more than twice the rate would be called, return the next higher score.
    Return None if there is no such score.
    """
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
