"""Verdicts over periods: a disk is slow once its ratio has been over the limit for a number of periods in a row.

The limit is the larger of two. One is an effect: a ratio that clients would notice. The other is chance: the ratio
that the slowest of so many healthy disks may reach, given the spread of this cluster's disks over the same periods.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from predrain.models.slow.latency_ratios import Floats, Ints, LatencyPeriod
from predrain.models.slow.slowness_rules import SlownessRule

Flags = npt.NDArray[np.bool_]

_NEVER = -(2**40)
FEW_PEERS = 4
"""With fewer peers a disk must be slow relative to the other hosts, too: of two disks that differ, one may be fast."""
CHANCE = 0.05
"""Probability that the slowest of all healthy disks passes the limit in a period, if their spread is normal."""


@dataclass(frozen=True, slots=True)
class SlowPeriod:
    """The state after a period: slow or not, the limit of the ratio, the number of periods over the effect, and the
    start.

    The start `since` is the number of a period; -1 means neither slow nor over the effect.
    """

    slow: Flags
    limit: Floats
    over: Ints
    since: Ints


@dataclass(slots=True)
class SlowWatch:
    """Follows disks (or hosts) under one rule. It is mutable on purpose; periods must come in order.

    Invariant: `_last` holds each one's ratios of its newest periods with data, NaN before the first.
    """

    rule: SlownessRule
    count: int
    _last: deque[Floats] = field(init=False)
    _slow: Flags = field(init=False)
    _over: Ints = field(init=False)
    _since: Ints = field(init=False)
    _seen: Ints = field(init=False)

    def __post_init__(self) -> None:
        self._last = deque(
            (np.full(self.count, np.nan, dtype=np.float32) for _ in range(self.rule.running)),
            maxlen=self.rule.running,
        )
        self._slow = np.zeros(self.count, dtype=np.bool_)
        self._over = np.zeros(self.count, dtype=np.int64)
        self._since = np.full(self.count, -1, dtype=np.int64)
        self._seen = np.full(self.count, _NEVER, dtype=np.int64)

    def grow(self, count: int) -> None:
        """Add space for disks that appeared since; they have no data yet."""
        more = count - self.count
        if more <= 0:
            return
        nothing = np.full(more, np.nan, dtype=np.float32)
        self._last = deque((np.concatenate([old, nothing]) for old in self._last), maxlen=self.rule.running)
        self._slow = np.concatenate([self._slow, np.zeros(more, dtype=np.bool_)])
        self._over = np.concatenate([self._over, np.zeros(more, dtype=np.int64)])
        self._since = np.concatenate([self._since, np.full(more, -1, dtype=np.int64)])
        self._seen = np.concatenate([self._seen, np.full(more, _NEVER, dtype=np.int64)])
        self.count = count

    def step(self, period: int, ratio: Floats) -> SlowPeriod:
        """Advance by one period. ratio: (count,) logarithms; a disk without data (NaN) keeps its state."""
        rule = self.rule
        known = np.isfinite(ratio)
        silent = known & ((period - self._seen) * rule.seconds > rule.gap_seconds)
        if silent.any():
            for old in self._last:
                old[silent] = np.nan
            self._slow[silent], self._over[silent], self._since[silent] = False, 0, -1
        self._push(ratio, known)
        self._seen[known] = period
        lowest = np.min(self._last, axis=0)  # NaN until there are enough periods
        highest = np.max(self._last, axis=0)
        limit = max(float(np.log(rule.ratio)), by_chance(lowest[known]))
        over = known & (ratio >= np.log(rule.ratio))
        self._since = np.where(over & (self._over == 0), period, self._since)
        self._over = np.where(known, np.where(over, self._over + 1, 0), self._over)
        self._slow |= known & (lowest >= limit)
        self._slow &= ~(known & (highest < np.log(rule.clears_at)))
        self._since = np.where(known & ~over & ~self._slow, -1, self._since)
        return SlowPeriod(
            self._slow.copy(),
            np.full(self.count, np.exp(limit), dtype=np.float32),
            self._over.copy(),
            self._since.copy(),
        )

    def _push(self, ratio: Floats, known: Flags) -> None:
        """Append the ratios of a period. A disk without data keeps its earlier ratios."""
        shifted = [np.where(known, new, old) for old, new in zip(self._last, [*self._last][1:], strict=False)]
        self._last.extend([*shifted, np.where(known, ratio, self._last[-1])])


def by_chance(ratios: Floats) -> float:
    """Return the log ratio that the largest of so many healthy disks passes with a probability of CHANCE.

    The spread is computed from the middle half (the median absolute deviation), which slow disks do not widen.
    """
    known = ratios[np.isfinite(ratios)]
    if len(known) < 2:
        return 0.0
    middle = float(np.median(known))
    spread = 1.4826 * float(np.median(np.abs(known - middle)))
    return middle + spread * NormalDist().inv_cdf(1 - CHANCE / len(known))


def beside_peers(period: LatencyPeriod) -> Floats:
    """Return the ratio that counts for a disk: to its host's others and, with few of them, to other hosts too.

    The ratio is NaN where it cannot be known: for a disk alone on its host, or one of two in a cluster of one host.
    """
    few = period.peers < FEW_PEERS
    elsewhere = np.where(np.isfinite(period.cluster), period.cluster, np.inf).astype(np.float32)
    counted: Floats = np.where(few, np.minimum(period.disk, elsewhere), period.disk)
    undecided = (period.peers == 0) | ((period.peers == 1) & ~np.isfinite(period.cluster))
    return np.where(undecided, np.float32(np.nan), counted)
