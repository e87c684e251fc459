"""A test that may be looked at every day: which of two bundles foretells failures that the other one misses.

Only failures that exactly one of two bundles foretold tell them apart (McNemar). If the second were no better, each of
them would be the second's with a chance of one half at most. The evidence is the mean, over every share from one half
to one, of the likelihood of what was seen over that of one half: an e-value. If the second is no better, it exceeds 20
at any time with a chance of 1 in 20 at most, however often it is looked at (Ville 1939; Ramdas et al., "Game-theoretic
statistics and safe anytime-valid inference", 2023). A 95 % interval that is looked at every day has no such bound.
"""

from __future__ import annotations

import math
from typing import Final

ENOUGH_EVIDENCE: Final = 20.0
"""How many times likelier than by chance what was seen must be."""


def weigh_evidence(only_second: int, only_first: int) -> float:
    """The e-value that the second foretells more. only_second, only_first: failures that one bundle alone foretold,
    0 or more. 1 where there are none.
    """
    from scipy.special import betainc, betaln

    count = only_first + only_second
    if count == 0:
        return 1.0
    upper = float(betainc(only_first + 1, only_second + 1, 0.5))
    if upper <= 0.0:
        return 0.0
    log = (count + 1) * math.log(2.0) + float(betaln(only_second + 1, only_first + 1)) + math.log(upper)
    return math.exp(min(log, 700.0))


def estimate_days_left(only_second: int, only_first: int, days: int) -> float | None:
    """Days until the evidence is enough if failures go on coming as in the `days` so far; 0 where it is enough, None
    where nothing speaks for the second."""
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
