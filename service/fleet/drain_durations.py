"""The time that a running drain still takes, and the time that a finished one took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import pairwise

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.claimed_settings import ABSENT
from predrain.actions.core.drain_policy import Policy
from predrain.data.drain import (
    Bound,
    BoundKind,
    Drain,
    DrainState,
    JournalEntry,
    JournalEvent,
    Progress,
)
from predrain.data.setting import OsdCrushWeight, OsdOverride, OsdSetting
from predrain.data.store.store_port import Store
from predrain.service.fleet.drain_timeline import DrainSample

_OVER = frozenset({DrainState.VERIFIED, DrainState.HANDED_OVER, DrainState.CANCELLED})
_ENDING = frozenset({DrainState.CANCELLING, DrainState.CANCELLED, DrainState.HANDED_OVER})
_HOUR = timedelta(hours=1)
_SHARE_ENOUGH, _PGS_ENOUGH, _TIME_ENOUGH = 0.2, 3, timedelta(minutes=5)
"""The share, PGs and time that must have moved before the measured pace is used, since a drain begins slowly."""
_STOOD_STILL = timedelta(minutes=5)
"""With no PG in flight, a longer gap in the curve is a pause or a halt; polls are at most this far apart."""


def estimate_hours_left(drain: Drain, samples: Sequence[DrainSample] = ()) -> float | None:
    """Estimate the hours that a drain still takes if nothing holds it: for its remaining data, and for the steps
    after that.

    Returns None if that is unknown: the drain does not run, a guard or a person holds it, or only its end is
    awaited. Data moves at the measured pace (`samples`: its curve), and at the planned pace before enough has
    been measured.
    """
    plan = drain.plan
    if drain.state is not DrainState.DRAINING or drain.held_by or plan is None or plan.eta_hours is None:
        return None
    after = [bound for bound in plan.bounds if bound.kind.follows_data]
    measured = measure_pace(drain, samples)
    moving = plan.eta_hours - sum(bound.hours for bound in after) if measured is None else measured
    hours = moving * _not_moved(drain.progress)
    hours += sum(bound.hours * _not_done(drain, bound) for bound in after)
    return hours if hours > 0 else None


def measure_pace(drain: Drain, samples: Sequence[DrainSample]) -> float | None:
    """Measure the hours that all data of the drain takes at the pace so far, without held or idle time.

    Returns None before enough data has moved for long enough.
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


def estimate_cancel_hours(drain: Drain, view: ClusterView | None, policy: Policy) -> float | None:
    """Estimate the hours that a cancel would take now: moved data comes back, and CRUSH weights that the end has
    set go back.

    Returns None if no data has moved, if the drain is over or is being cancelled, or if the cluster is unknown.
    """
    plan, moved = drain.plan, 1 - _not_moved(drain.progress)
    if drain.state in _ENDING or plan is None or view is None or not moved:
        return None
    from predrain.actions.planning.plan_figures import way_back

    weights = [bound for bound in plan.bounds if bound.kind is BoundKind.WEIGHT_ZERO]
    undone = sum(bound.hours * (1 - _not_done(drain, bound)) for bound in weights)
    return way_back(view, drain, policy) * moved + undone


def compute_hours_taken(drain: Drain, journal: Iterable[JournalEntry]) -> float | None:
    """Compute the hours from a drain's first step until its copies were counted elsewhere, or all was back.

    Returns None before that, and for a drain that never began.
    """
    lines = tuple(journal) if drain.state in _OVER else ()
    began = next((line.at for line in lines if line.event is JournalEvent.BEGUN), None)
    if began is None:
        return None
    counted = next((line.at for line in reversed(lines) if line.event is JournalEvent.COUNTED), None)
    back = drain.state is DrainState.CANCELLED
    return ((drain.updated_at if back or counted is None else counted) - began) / _HOUR


class DrainDurations:
    """The hours that finished drains took, each read once from the journal, since they never change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._took: dict[tuple[str, DrainState], float | None] = {}

    def find_hours_taken(self, drain: Drain) -> float | None:
        """Return `compute_hours_taken` of the drain, from memory if possible."""
        if drain.state not in _OVER:
            return None
        known = drain.id, drain.state
        if known not in self._took:
            self._took[known] = compute_hours_taken(drain, self._store.journal(drain.id))
        return self._took[known]


def _not_moved(progress: Progress) -> float:
    """Return the share that is still to move, by PGs or by bytes, whichever is larger; 1.0 before the plan counts
    any.
    """
    shares = (
        (progress.moved_pgs, progress.planned_pgs),
        (progress.moved_bytes, progress.planned_bytes),
    )
    return max((1 - moved / planned for moved, planned in shares if planned), default=1.0)


def _not_done(drain: Drain, bound: Bound) -> float:
    """Return the share of the following steps that is to come: the present weights as a share of the original
    ones.
    """
    match bound.kind:
        case BoundKind.OVERRIDE_ZERO:
            return _find_kept_share(drain, OsdOverride)
        case BoundKind.WEIGHT_ZERO:
            return _find_kept_share(drain, OsdCrushWeight)
        case _:
            return 1.0


def _find_kept_share(drain: Drain, kind: type[OsdSetting]) -> float:
    names = [kind(osd) for osd in drain.osds]
    both = [(drain.ours.get(name, ABSENT), drain.saved.get(name, ABSENT)) for name in names]
    known = [(float(now), float(had)) for now, had in both if ABSENT not in (now, had)]
    had = sum(had for _, had in known)
    return sum(now for now, _ in known) / had if had else 1.0
