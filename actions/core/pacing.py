"""The number of PGs that may be on their way: additive increase, multiplicative decrease, by client latency.

One noisy poll neither raises nor cuts the budget: a change is made when two polls in a row ask for it. A cut
is given time to take effect, so that one slow minute halves the budget once and not three times.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.data.clock import is_within_last
from predrain.data.ids import OsdId


class Tempo(StrEnum):
    """The change of pace that the latency signal asks for."""

    GROW = "one more PG"
    KEEP = "as before"
    HOLD = "no new PG"
    HALVE = "half as many"
    PULL_BACK = "take back what waits"
    BLIND = "one PG at a time: no latency signal"


_CUTS = (Tempo.HALVE, Tempo.PULL_BACK)


@dataclass(frozen=True, slots=True)
class Pace:
    """The result: from now on `budget` PGs of this drain may be on their way. `ratio` is the signal that set
    it.

    asked: the change that this poll's signal asked for, whether or not it was made; the next poll compares
    with it.
    """

    tempo: Tempo
    budget: int
    ratio: float | None
    asked: Tempo
    why_one: str = ""
    """The reason why at most one PG may be on its way, if the reason is not latency."""

    @property
    def is_on_hold(self) -> bool:
        """Return whether no PG may start now."""
        return self.tempo in (Tempo.HOLD, *_CUTS)


_SOONER_SECONDS = 2.0
"""Seconds between two polls after a step: OSDs report to the mgr every 5 s."""
_LOOKING_MAX = 0.1
"""The largest share of the time that such polls may take, so that a mgr with slow dumps is not asked more
often.
"""
_SOON = timedelta(seconds=60)


def find_look_seconds(
    policy: Policy, took_seconds: float, stepped_at: datetime | None, now: datetime
) -> float:
    """Return the seconds until the next poll.

    For 60 s after a step the wait is shorter than a tick, so that the arrival of a small PG is seen soon and
    the next PGs can start.

    took_seconds: how long the last poll and its commands took. stepped_at: when commands were last sent;
    None: never.
    """
    if stepped_at is None or not is_within_last(stepped_at, now, _SOON):
        return policy.tick_seconds
    return min(policy.tick_seconds, max(_SOONER_SECONDS, took_seconds / _LOOKING_MAX))


def find_worst_latency(view: ClusterView, osds: Collection[OsdId]) -> tuple[OsdId, float] | None:
    """Return the OSD with the highest latency ratio (now to its own last hour) and the ratio; None if no
    ratio is known.
    """
    known = [(view.latency_ratio[osd], -osd) for osd in osds if osd in view.latency_ratio]
    if not known:
        return None
    ratio, osd = max(known)
    return OsdId(-osd), ratio


def compute_latency_signal(
    view: ClusterView, osds: Collection[OsdId], busy: Collection[OsdId]
) -> float | None:
    """Return the highest latency ratio among `osds`.

    Return None if no OSD of `busy` has a ratio, because their latency is the one that counts.
    """
    if not any(osd in view.latency_ratio for osd in busy):
        return None
    found = find_worst_latency(view, osds)
    return found[1] if found else None


def latency_seen(view: ClusterView, osds: Collection[OsdId]) -> str:
    """Describe the client latency at these OSDs as the end of a journal line, with the slowest single
    operation.
    """
    said = ""
    if found := find_worst_latency(view, osds):
        said += f", latency {found[1]:.2f}x at osd.{found[0]}"
    slow = {osd: view.slowest_ms[osd] for osd in osds if osd in view.slowest_ms}
    if slow:
        osd = max(slow, key=lambda osd: (slow[osd], -osd))
        said += f", slowest probe {slow[osd]:.0f} ms at osd.{osd}"
    return said


def compute_pace(
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
    """Compute the next budget, in [1, in_flight_max].

    The budget grows only if it was used. A drain of an urgent disk may cost clients more latency.

    before: `asked` of the poll before. started: PGs of the last step; small ones may already have arrived at
    the poll. why_one: the reason why at most one PG may be on its way, independent of latency. due: whether a
    whole tick has passed since the budget was last judged. A poll in between, which follows a step, changes
    no budget; it only starts nothing while latency is too high.
    """
    asked = _choose_tempo(ratio, policy, urgent=urgent)
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


def _choose_tempo(ratio: float | None, policy: Policy, *, urgent: bool) -> Tempo:
    stretch = policy.urgent_latency_factor if urgent else 1.0

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
