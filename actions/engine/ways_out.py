"""The ways out of a drain that cannot go on by itself: which are open now, and what each of them means.

A way is offered to a drain that has been held for the same reasons for `policy.ways_out_after`, or at once where only a
person can help: a cancel whose data has no room to go back, and a cancel that broke.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.capacity import OsdCapacity, promised_by_others, remaining, returning, room
from predrain.actions.core.in_flight import WALKING
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.state_machine import Event, can
from predrain.actions.mechanics.batch import bound_for
from predrain.actions.mechanics.desired_upmaps import find_stray_upmaps
from predrain.actions.placement.failure_domains import applied
from predrain.actions.placement.shared_failure import slot_reused
from predrain.actions.placement.what_if import placed
from predrain.actions.planning.diff import in_units
from predrain.data.drain import Drain, DrainState, Intent, Move
from predrain.data.ids import OsdId
from predrain.data.refusal import Refusal
from predrain.data.way_out import OpenWayOut, WayOut


class WayNotOpen(Refusal):
    """The drain is not offered this way out now."""

    def __init__(self, drain: Drain, way: WayOut, open_now: tuple[OpenWayOut, ...], policy: Policy) -> None:
        minutes = policy.ways_out_after.total_seconds() / 60
        offered = ", ".join(one.way for one in open_now)
        others = f"open are: {offered}" if offered else "it has none now"
        super().__init__(
            f"{way} is not open to drain {drain.id}, which is {drain.state.value}; {others}. A way out is offered when "
            f"the drain has been held for the same reasons for {minutes:g} minutes, or when only a person can help"
        )


_STANDS_STILL = frozenset(
    {
        DrainState.APPROVED,
        DrainState.PREPARING,
        DrainState.DRAINING,
        DrainState.HOLDING,
        DrainState.DRAINED,
        DrainState.CANCELLING,
    }
)
_STOPPED = frozenset({"halt", "lease"})
"""Nothing may be sent at all: no way out would lead on."""
_PASSING = frozenset({"window", "budget"})
"""Holds that are meant to last for hours, and end by themselves."""


def list_ways_out(
    view: ClusterView, drain: Drain, policy: Policy, context: Context
) -> tuple[OpenWayOut, ...]:
    """The ways out that are open to the drain now; none while it goes on, or will go on by itself."""
    if not _needs_person(drain, policy, context.now):
        return ()
    osds = _name_osds(drain.osds)
    missing = find_missing_room(view, drain, policy, context)
    found: list[OpenWayOut] = []
    if missing:
        each = " and ".join(f"{in_units(size)} on osd.{osd}" for osd, size in sorted(missing.items())[:3])
        more = f" and room on {len(missing) - 3} more OSDs" if len(missing) > 3 else ""
        found.append(
            OpenWayOut(
                WayOut.MAKE_ROOM,
                f"Free {each}{more}: delete data, or add OSDs. The drain goes on by itself when there is room.",
            )
        )
    if _comes_back(drain):
        computed = "plan" not in drain.held_for  # else the rest of the disk could not be planned either
        if computed and drain.intent.moves_data and not slot_reused(view, drain):
            found.append(
                OpenWayOut(
                    WayOut.STAY_DRAINED,
                    f"Take back the cancel: what has moved stays where it is, and the rest of {osds} follows.",
                )
            )
        found.append(
            OpenWayOut(
                WayOut.GIVE_UP_CANCEL,
                f"Give up the cancel: balancer, throttles and affinity go back, and the upmaps and weights of {osds} "
                "stay as they are now. The journal lists them.",
            )
        )
        return tuple(found)
    if can(drain, Event.CHOOSE_TARGETS) and (troubled := find_troubled_targets(view, drain, policy, context)):
        found.append(
            OpenWayOut(
                WayOut.CHOOSE_OTHER_TARGETS,
                f"Plan anew without {_name_osds(troubled)}, for as long as this drain lasts.",
            )
        )
    if can(drain, Event.CANCEL):
        found.append(
            OpenWayOut(
                WayOut.CANCEL,
                f"Cancel the drain: what has moved goes back to {osds}, as far as there is room.",
            )
        )
    return tuple(found)


def find_troubled_targets(
    view: ClusterView, drain: Drain, policy: Policy, context: Context
) -> tuple[OsdId, ...]:
    """Targets that the drain waits for in vain: gone, down, out, of unknown size, or with no room for what is to come.
    Only a drain that goes PG by PG can choose others.
    """
    if drain.plan is None or drain.plan.mechanic not in WALKING or drain.intent.fills_osd:
        return ()
    moves = remaining(view, drain)
    full = room(context.survey, policy, (*moves, *promised_by_others(context, view, drain)))
    targets = {move.target for move in moves} or _list_stray_targets(view, drain, context, full)
    return tuple(sorted(target for target in targets if not _takes_data(view, target, full)))


def find_missing_room(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> dict[OsdId, int]:
    """The bytes that are missing on each OSD for all that the drain has still to send there, or to bring back."""
    moves: tuple[Move, ...] = (returning if _comes_back(drain) else remaining)(view, drain)
    coming: Counter[OsdId] = Counter()
    for move in moves:
        coming[move.target] += move.bytes
    free = room(context.survey, policy, promised_by_others(context, view, drain))
    missing: dict[OsdId, int] = {}
    for target, size in coming.items():
        full, known = free.fullness(target, size), view.osds.get(target)
        if full is not None and full > free.limit and known is not None and known.size_bytes:
            missing[target] = round((full - free.limit) * known.size_bytes)
    return missing


def _needs_person(drain: Drain, policy: Policy, now: datetime) -> bool:
    if drain.given_up is not None:
        return False
    if drain.state is DrainState.FAILED:
        return drain.resume_to is DrainState.CANCELLING
    if drain.state not in _STANDS_STILL or not drain.held_by or drain.held_since is None:
        return False
    held_for = set(drain.held_for)
    if held_for & _STOPPED or held_for <= _PASSING:
        return False
    no_room_back = drain.state is DrainState.CANCELLING and "space" in held_for
    return no_room_back or now - drain.held_since >= policy.ways_out_after


def _comes_back(drain: Drain) -> bool:
    return DrainState.CANCELLING in (drain.state, drain.resume_to)


def _list_stray_targets(view: ClusterView, drain: Drain, context: Context, full: OsdCapacity) -> set[OsdId]:
    """Where PGs go when an emptied drain gives back upmaps that are not wanted any more."""
    if drain.intent is not Intent.REPLACE:
        return set()
    strays = find_stray_upmaps(view, drain, context, full)
    raw = placed(view, (), strays, pinned=False)
    return {
        osd
        for pg, pairs in strays.items()
        for osd, _ in bound_for(view, view.pgs[pg], applied(raw[pg], pairs))
    }


def _takes_data(view: ClusterView, target: OsdId, full: OsdCapacity) -> bool:
    osd, after = view.osds.get(target), full.fullness(target)
    known = osd is not None and osd.up and osd.reweight > 0
    return known and after is not None and after <= full.limit


def _name_osds(osds: tuple[OsdId, ...]) -> str:
    return ", ".join(f"osd.{osd}" for osd in osds)
