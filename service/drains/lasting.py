"""How long a drain still takes while it runs, and how long it took once it is over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import pairwise

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import ABSENT
from predrain.actions.core.policy import Policy
from predrain.actions.core.state_machine import BEGUN, COUNTED
from predrain.data.drain import AFTER, AFTER_OVERRIDE, AFTER_WEIGHT, Drain, DrainState, JournalEntry, Progress
from predrain.data.setting import OsdCrushWeight, OsdOverride, OsdSetting
from predrain.data.store.port import Store
from predrain.service.drains.timeline import DrainSample

_OVER = frozenset({DrainState.VERIFIED, DrainState.HANDED_OVER, DrainState.CANCELLED})
_ENDING = frozenset({DrainState.CANCELLING, DrainState.CANCELLED, DrainState.HANDED_OVER})
_HOUR = timedelta(hours=1)
_SHARE_ENOUGH, _PGS_ENOUGH, _TIME_ENOUGH = 0.2, 3, timedelta(minutes=5)
"""What must have moved, and for how long, before the pace so far is believed: a drain begins slowly."""
_STOOD_STILL = timedelta(minutes=5)
"""With nothing on its way, a longer gap in the curve is a pause or a halt; looks are at most so far apart."""


def left(drain: Drain, samples: Sequence[DrainSample] = ()) -> float | None:
    """Hours that it has still to go, if nothing holds it: data that is not moved, and what follows when none is left.
    None where nobody can tell: it is not under way or stands still, a guard or a person holds it, or it waits for its
    end. Data goes on at the pace so far (`samples`: its curve), and as planned before there is enough of that.
    """
    plan = drain.plan
    if drain.state is not DrainState.DRAINING or drain.held_by or plan is None or plan.eta_hours is None:
        return None
    after = [bound for bound in plan.bounds if bound.name.startswith(AFTER)]
    measured = measure_pace(drain, samples)
    moving = plan.eta_hours - sum(bound.hours for bound in after) if measured is None else measured
    hours = moving * _not_moved(drain.progress)
    hours += sum(bound.hours * _not_done(drain, bound.name) for bound in after)
    return hours if hours > 0 else None


def measure_pace(drain: Drain, samples: Sequence[DrainSample]) -> float | None:
    """Hours that all of its data takes at the pace so far, without the time in which it was held or stood still; None
    before enough of it has moved for long enough.
    """
    progress, moved, hours = drain.progress, 0, 0.0
    for one, after in pairwise(samples):
        if one.held_by:
            continue
        gap = after.at - one.at
        hours += (gap if one.in_flight else min(gap, _STOOD_STILL)) / _HOUR
        moved += max(0, one.bytes_left - after.bytes_left)
    enough = moved >= _SHARE_ENOUGH * progress.planned_bytes and progress.moved_pgs >= _PGS_ENOUGH
    if not enough or not moved or hours < _TIME_ENOUGH / _HOUR:
        return None
    return hours * progress.planned_bytes / moved


def back(drain: Drain, view: ClusterView | None, policy: Policy) -> float | None:
    """Hours that a cancel would take now: data that has moved comes back, behind the CRUSH weight that its end has set.
    None where none has moved, where it is over or is being cancelled, and where the cluster is not known.
    """
    plan, moved = drain.plan, 1 - _not_moved(drain.progress)
    if drain.state in _ENDING or plan is None or view is None or not moved:
        return None
    from predrain.actions.planning.figures import way_back

    weights = [bound for bound in plan.bounds if bound.name.startswith(AFTER_WEIGHT)]
    undone = sum(bound.hours * (1 - _not_done(drain, bound.name)) for bound in weights)
    return way_back(view, drain, policy) * moved + undone


def took(drain: Drain, journal: Iterable[JournalEntry]) -> float | None:
    """Hours from its first step until its copies were counted elsewhere, or all was back; None before, and for one that
    never began.
    """
    lines = tuple(journal) if drain.state in _OVER else ()
    began = next((line.at for line in lines if line.decided.startswith(BEGUN)), None)
    if began is None:
        return None
    counted = next((line.at for line in reversed(lines) if line.decided.startswith(COUNTED)), None)
    back = drain.state is DrainState.CANCELLED
    return ((drain.updated_at if back or counted is None else counted) - began) / _HOUR


class Past:
    """What drains took, each read once from its journal: what is over does not change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._took: dict[tuple[str, DrainState], float | None] = {}

    def of(self, drain: Drain) -> float | None:
        """What `took` says of it."""
        if drain.state not in _OVER:
            return None
        known = drain.id, drain.state
        if known not in self._took:
            self._took[known] = took(drain, self._store.journal(drain.id))
        return self._took[known]


def _not_moved(progress: Progress) -> float:
    """The share that is still to move, by PGs or by bytes, whichever has more to come; all of it before the first."""
    shares = (
        (progress.moved_pgs, progress.planned_pgs),
        (progress.moved_bytes, progress.planned_bytes),
    )
    return max((1 - moved / planned for moved, planned in shares if planned), default=1.0)


def _not_done(drain: Drain, name: str) -> float:
    """The share of what follows that is still to come: as much as its weights still have of what they had."""
    if name.startswith(AFTER_OVERRIDE):
        return _find_kept_share(drain, OsdOverride)
    return _find_kept_share(drain, OsdCrushWeight) if name.startswith(AFTER_WEIGHT) else 1.0


def _find_kept_share(drain: Drain, kind: type[OsdSetting]) -> float:
    names = [kind(osd) for osd in drain.osds]
    both = [(drain.ours.get(name, ABSENT), drain.saved.get(name, ABSENT)) for name in names]
    known = [(float(now), float(had)) for now, had in both if ABSENT not in (now, had)]
    had = sum(had for _, had in known)
    return sum(now for now, _ in known) / had if had else 1.0
