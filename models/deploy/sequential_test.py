"""A test that may be read every day: which of two bundles foretells failures that the other one misses.

Only failures that exactly one of two bundles foretold distinguish them (McNemar). If the second were no better,
each of these failures would be the second's with a probability of one half at most. The evidence is an e-value: the
likelihood of the observed failures divided by that under one half, as a mean over every share from one half to one.
If the second is no better, the evidence exceeds 20 at any time with a probability of 1 in 20 at most, however often
it is read (Ville 1939; Ramdas et al., "Game-theoretic statistics and safe anytime-valid inference", 2023). A 95 %
interval that is read every day has no such bound.
"""

from __future__ import annotations

import math
from typing import Final

ENOUGH_EVIDENCE: Final = 20.0
"""The e-value from which on the evidence is enough."""


def weigh_evidence(only_second: int, only_first: int) -> float:
    """Return the e-value for "the second bundle foretells more", or 1 without any failures.

    only_second, only_first: number of failures that only this bundle foretold, 0 or more.
    """
    count = only_first + only_second
    if count == 0:
        return 1.0
    # The mean over the shares from one half to one is twice an incomplete beta integral, by a binomial tail.
    tail = [_log_choose(count + 1, hits) for hits in range(only_first + 1, count + 2)]
    most = max(tail)
    log_upper = most + math.log(math.fsum(math.exp(one - most) for one in tail)) - (count + 1) * math.log(2.0)
    log_beta = -math.log(count + 1) - _log_choose(count, only_first)
    return math.exp(min((count + 1) * math.log(2.0) + log_beta + log_upper, 700.0))


def _log_choose(count: int, chosen: int) -> float:
    """Return the logarithm of the binomial coefficient."""
    return math.lgamma(count + 1) - math.lgamma(chosen + 1) - math.lgamma(count - chosen + 1)


def estimate_days_left(only_second: int, only_first: int, days: int) -> float | None:
    """Return the days until the evidence is enough, if failures continue to occur as in the `days` so far.

    Return 0 if it is enough now, and None if nothing favours the second bundle.
    """
    evidence = weigh_evidence(only_second, only_first)
    if evidence >= ENOUGH_EVIDENCE:
        return 0.0
    count = only_first + only_second
    share = (only_second + 0.5) / (count + 1)
    if count == 0 or share <= 0.5:
        return None
    more, limit = 1, 10_000
    while more < limit:
        hits = only_second + share * more
        if weigh_evidence(round(hits), round(only_first + (1 - share) * more)) >= ENOUGH_EVIDENCE:
            break
        more = max(more + 1, more + more // 20)
    return more * days / count
