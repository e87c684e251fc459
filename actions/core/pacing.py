"""How many PGs may be on their way: additive increase, multiplicative decrease, by the latency that
clients feel.

A single noisy look neither grows nor cuts the budget: what is asked twice running is done. A cut is given time to
show, so that one slow minute halves once and not three times.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.policy import Policy
from predrain.data.clock import lately
from predrain.data.ids import OsdId


class Tempo(StrEnum):
    """What the signal asks for."""

    GROW = "one more PG"
    KEEP = "as before"
    HOLD = "no new PG"
    HALVE = "half as many"
    PULL_BACK = "take back what waits"
    BLIND = "one PG at a time: no latency signal"


_CUTS = (Tempo.HALVE, Tempo.PULL_BACK)


@dataclass(frozen=True, slots=True)
class Pace:
    """`budget` PGs may be on their way for this drain from now on; `ratio` is the signal it was set by.

    `asked`: what this look's signal asked for, whether or not it was done; the next look is judged beside it.
    """

    tempo: Tempo
    budget: int
    ratio: float | None
    asked: Tempo
    why_one: str = ""
    """Why no more than one PG may be on its way, where something beside latency says so."""

    @property
    def holds(self) -> bool:
        """Whether no PG may start now."""
        return self.tempo in (Tempo.HOLD, *_CUTS)


_SOONER_SECONDS = 2.0
"""Between two looks that follow a step: OSDs report to the mgr every five seconds."""
_LOOKING_MAX = 0.1
"""Share of the time that such looks may take, so that a mgr that needs seconds for a dump is not asked more often."""
_SOON = timedelta(seconds=60)


def find_look_seconds(
    policy: Policy, took_seconds: float, stepped_at: datetime | None, now: datetime
) -> float:
    """How long to wait for the next look: less than a tick for a while after a step, so that a small PG which has
    arrived is seen, and the next ones go.

    took_seconds: how long the last look and what followed took. stepped_at: when commands were last sent, None: never.
    """
    if stepped_at is None or not lately(stepped_at, now, _SOON):
        return policy.tick_seconds
    return min(policy.tick_seconds, max(_SOONER_SECONDS, took_seconds / _LOOKING_MAX))


def worst(view: ClusterView, osds: Collection[OsdId]) -> tuple[OsdId, float] | None:
    """The OSD with the highest latency ratio (now over its own hour before), and the ratio; None without any."""
    known = [(view.latency_ratio[osd], -osd) for osd in osds if osd in view.latency_ratio]
    if not known:
        return None
    ratio, osd = max(known)
    return OsdId(-osd), ratio


def signal(view: ClusterView, osds: Collection[OsdId], busy: Collection[OsdId]) -> float | None:
    """The worst latency ratio among `osds`; None when none of the `busy` ones, whose latency is what counts, has
    a ratio.
    """
    if not any(osd in view.latency_ratio for osd in busy):
        return None
    found = worst(view, osds)
    return found[1] if found else None


def latency_seen(view: ClusterView, osds: Collection[OsdId]) -> str:
    """What clients feel at these OSDs, to end a journal line with; the single slowest operation counts too."""
    said = ""
    if found := worst(view, osds):
        said += f", latency {found[1]:.2f}x at osd.{found[0]}"
    slow = {osd: view.slowest_ms[osd] for osd in osds if osd in view.slowest_ms}
    if slow:
        osd = max(slow, key=lambda osd: (slow[osd], -osd))
        said += f", slowest probe {slow[osd]:.0f} ms at osd.{osd}"
    return said


def pace(
    budget: int,
    in_flight: int,
    ratio: float | None,
    policy: Policy,
    *,
    urgent: bool,
    before: str = "",
    started: int = 0,
    why_one: str = "",
    due: bool = True,
) -> Pace:
    """The next budget, in [1, in_flight_max]. It grows only when it was used; an urgent disk may cost
    clients more.

    before: `asked` of the look before. started: PGs of the last step, which small ones may have left behind already
    when one looks. why_one: why at most one PG may be on its way, whatever the latency. due: whether a whole tick has
    passed since the budget was last judged. A look in between, which follows a step, changes no budget: it only starts
    nothing while clients wait.
    """
    asked = _asked(ratio, policy, urgent=urgent)
    most = 1 if why_one else policy.in_flight_max
    again = before == asked or (asked in _CUTS and before in _CUTS)
    match asked:
        case Tempo.BLIND:
            return Pace(asked, 1, ratio, asked, why_one)
        case _ if not due:
            tempo = Tempo.HOLD if asked in (Tempo.HOLD, *_CUTS) else Tempo.KEEP
            return Pace(tempo, max(1, min(most, budget)), ratio, Tempo(before) if before else asked, why_one)
        case Tempo.GROW if not (again and max(in_flight, started) >= budget < most):
            tempo, now = Tempo.KEEP, budget
        case Tempo.GROW:
            tempo, now = asked, budget + 1
        case Tempo.HALVE | Tempo.PULL_BACK if not again:
            tempo, now = Tempo.HOLD, budget
        case Tempo.HALVE | Tempo.PULL_BACK:
            tempo, now = asked, budget if in_flight > budget else budget // 2
        case _:
            tempo, now = asked, budget
    return Pace(tempo, max(1, min(most, now)), ratio, asked, why_one)


def _asked(ratio: float | None, policy: Policy, *, urgent: bool) -> Tempo:
    stretch = policy.urgent_stretch if urgent else 1.0

    def bound(limit: float) -> float:
        return 1 + (limit - 1) * stretch

    if ratio is None:
        return Tempo.BLIND
    if ratio > bound(policy.latency_pull_back):
        return Tempo.PULL_BACK
    if ratio > bound(policy.latency_halve):
        return Tempo.HALVE
    if ratio > bound(policy.latency_hold):
        return Tempo.HOLD
    return Tempo.GROW if ratio < bound(policy.latency_grow) else Tempo.KEEP
