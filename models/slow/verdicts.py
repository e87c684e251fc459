"""Periods go by: a disk is slow once its ratio has stood over the limit for so many of them running.

The limit is the larger of an effect (a ratio that clients would feel) and of chance: how far out the slowest of so
many healthy disks may lie, given how widely this cluster's disks spread over the same periods.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from predrain.models.slow.ratios import Floats, Ints, Period

Flags = npt.NDArray[np.bool_]

_NEVER = -(2**40)
FEW_PEERS = 4
"""With fewer peers a disk must be slow beside the other hosts as well: of two that differ, one may be fast."""
CHANCE = 0.05
"""Chance that the slowest of all healthy disks passes the limit in a period, were their spread normal."""


@dataclass(frozen=True, slots=True)
class SlownessRule:
    """When something is slow. `seconds`: a period. `ratio`: the least effect; `running`: periods in a row.

    `clears_at`: it is slow no longer once its ratio has been below this for as many periods running. `gap_seconds`: a
    longer silence starts the count anew.
    """

    seconds: int
    ratio: float
    running: int
    clears_at: float
    gap_seconds: int


DAY = 86_400
DISKS = SlownessRule(seconds=DAY, ratio=1.2, running=3, clears_at=1.1, gap_seconds=7 * DAY)
"""Slow enough to be drained for. 1.2 is the ratio at which a drain holds its own work for the clients' sake."""
HOSTS = SlownessRule(seconds=DAY, ratio=1.5, running=3, clears_at=1.25, gap_seconds=7 * DAY)
"""Hosts differ for good reasons (hardware, what they serve), and nothing is done to them but to say so."""
HOURS = SlownessRule(seconds=3_600, ratio=1.5, running=3, clears_at=1.2, gap_seconds=DAY)
"""Slow enough to be spared the primary's role, which is taken back as easily."""


@dataclass(frozen=True, slots=True)
class SlowPeriod:
    """After a period: which are slow, the ratio that each had to pass, for how many periods it has been over the
    effect, and since when (the period's number; -1: not)."""

    slow: Flags
    limit: Floats
    over: Ints
    since: Ints


@dataclass(slots=True)
class SlowWatch:
    """Follows disks (or hosts) under one rule. Mutable on purpose; periods must come in order.

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
        """Room for those that came since; nothing is known of them yet."""
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
        """The next period. ratio: (count,) logarithms, NaN where there are no data: those keep their standing."""
        rule = self.rule
        known = np.isfinite(ratio)
        silent = known & ((period - self._seen) * rule.seconds > rule.gap_seconds)
        if silent.any():
            for old in self._last:
                old[silent] = np.nan
            self._slow[silent], self._over[silent], self._since[silent] = False, 0, -1
        self._push(ratio, known)
        self._seen[known] = period
        lowest = np.min(self._last, axis=0)  # NaN until there are enough
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
        """A period without data takes no place in the row of those that count."""
        shifted = [np.where(known, new, old) for old, new in zip(self._last, [*self._last][1:], strict=False)]
        self._last.extend([*shifted, np.where(known, ratio, self._last[-1])])


def by_chance(ratios: Floats) -> float:
    """The logarithm of ratio that the largest of so many healthy ones passes with a chance of CHANCE.

    Their spread is taken from the middle half (the median absolute deviation), which slow ones do not widen.
    """
    known = ratios[np.isfinite(ratios)]
    if len(known) < 2:
        return 0.0
    middle = float(np.median(known))
    spread = 1.4826 * float(np.median(np.abs(known - middle)))
    return middle + spread * NormalDist().inv_cdf(1 - CHANCE / len(known))


def beside_peers(period: Period) -> Floats:
    """The ratio that counts for a disk: against its host's others; with few of them, against other hosts too.

    NaN where nothing can be told: a disk alone on its host, or one of two in a cluster of one host.
    """
    few = period.peers < FEW_PEERS
    elsewhere = np.where(np.isfinite(period.cluster), period.cluster, np.inf).astype(np.float32)
    counted: Floats = np.where(few, np.minimum(period.disk, elsewhere), period.disk)
    undecided = (period.peers == 0) | ((period.peers == 1) & ~np.isfinite(period.cluster))
    return np.where(undecided, np.float32(np.nan), counted)
