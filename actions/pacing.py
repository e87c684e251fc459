"""How many PGs may be on their way: additive increase, multiplicative decrease, by the latency that
clients feel.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from actions.cluster.view import ClusterView
from actions.policy import Policy
from data.ids import OsdId


class Tempo(StrEnum):
    """What the signal asks for."""

    GROW = "one more PG"
    KEEP = "as before"
    HOLD = "no new PG"
    HALVE = "half as many"
    PULL_BACK = "take back what waits"
    BLIND = "one PG at a time: no latency signal"


@dataclass(frozen=True, slots=True)
class Pace:
    """`budget` PGs may be on their way for this drain from now on; `ratio` is the signal it was set by."""

    tempo: Tempo
    budget: int
    ratio: float | None


def signal(view: ClusterView, osds: Iterable[OsdId]) -> float | None:
    """The worst latency ratio (now over its own hour before) among OSDs; None when none of them has one."""
    return max((view.latency_ratio[osd] for osd in osds if osd in view.latency_ratio), default=None)


def pace(budget: int, in_flight: int, ratio: float | None, policy: Policy, *, urgent: bool) -> Pace:
    """The next budget, in [1, in_flight_max]. It grows only when it was used; an urgent disk may cost
    clients more.
    """

    def bound(limit: float) -> float:
        return 1 + (limit - 1) * (policy.urgent_stretch if urgent else 1.0)

    if ratio is None:
        return Pace(Tempo.BLIND, 1, None)
    if ratio > bound(policy.latency_pull_back):
        return Pace(Tempo.PULL_BACK, max(1, budget // 2), ratio)
    if ratio > bound(policy.latency_halve):
        return Pace(Tempo.HALVE, max(1, budget // 2), ratio)
    if ratio > bound(policy.latency_hold):
        return Pace(Tempo.HOLD, budget, ratio)
    if ratio < bound(policy.latency_grow) and in_flight >= budget:
        return Pace(Tempo.GROW, min(policy.in_flight_max, budget + 1), ratio)
    return Pace(Tempo.KEEP, min(budget, policy.in_flight_max), ratio)
