"""The ways out of a drain that cannot go on by itself: which ones are open now, and what each one means.

A way out is offered to a drain that has been held for the same reasons for `policy.ways_out_after`. It is
offered at once if only a person can help: the data of a cancel has no capacity to go back to, or a cancel
failed.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.capacity import (
    OsdCapacity,
    compute_osd_capacity,
    list_remaining_moves,
    list_returning_moves,
    promised_by_others,
)
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.in_flight import WALKING
from predrain.actions.core.situation import Context
from predrain.actions.core.state_machine import Event, can_take_event
from predrain.actions.mechanics.desired_upmaps import find_stray_upmaps
from predrain.actions.mechanics.step_batch import bound_for
from predrain.actions.placement.failure_domains import apply_upmap_pairs, slot_reused
from predrain.actions.placement.what_if import compute_up_sets
from predrain.data.drain import Drain, DrainState, Intent, Move
from predrain.data.hold_reason import HoldReason
from predrain.data.ids import OsdId
from predrain.data.messages import format_size
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
_STOPPED = frozenset({HoldReason.HALT, HoldReason.LEASE, HoldReason.UNREACHABLE})
"""Reasons to send no command at all; no way out would help."""
_PASSING = frozenset({HoldReason.WINDOW, HoldReason.BUDGET})
"""Reasons for holds that are meant to last for hours and end by themselves."""


def list_ways_out(
    view: ClusterView, drain: Drain, policy: Policy, context: Context
) -> tuple[OpenWayOut, ...]:
    """Return the ways out that are open to the drain now; none while it goes on or will go on by itself."""
    if not _needs_person(drain, policy, context.now):
        return ()
    osds = _name_osds(drain.osds)
    missing = find_missing_room(view, drain, policy, context)
    found: list[OpenWayOut] = []
    if missing:
        each = " and ".join(f"{format_size(size)} on osd.{osd}" for osd, size in sorted(missing.items())[:3])
        more = f" and room on {len(missing) - 3} more OSDs" if len(missing) > 3 else ""
        found.append(
            OpenWayOut(
                WayOut.MAKE_ROOM,
                f"Free {each}{more}: delete data, or add OSDs. The drain goes on by itself when there is room.",
            )
        )
    if _comes_back(drain):
        computed = (
            HoldReason.PLAN not in drain.held_for
        )  # else the rest of the disk could not be planned either
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
    if can_take_event(drain, Event.CHOOSE_TARGETS) and (
        troubled := find_troubled_targets(view, drain, policy, context)
    ):
        found.append(
            OpenWayOut(
                WayOut.CHOOSE_OTHER_TARGETS,
                f"Plan again without {_name_osds(troubled)}, for as long as this drain lasts.",
            )
        )
    if can_take_event(drain, Event.CANCEL):
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
    """Find the targets that cannot take the drain's data: gone, down, out, of unknown size, or too full for
    it.

    Only a drain by single PGs can choose other targets.
    """
    if drain.plan is None or drain.plan.mechanic not in WALKING or drain.intent.fills_osd:
        return ()
    moves = list_remaining_moves(view, drain)
    full = compute_osd_capacity(context.survey, policy, (*moves, *promised_by_others(context, view, drain)))
    targets = {move.target for move in moves} or _list_stray_targets(view, drain, context, full)
    return tuple(sorted(target for target in targets if not _takes_data(view, target, full)))


def find_missing_room(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> dict[OsdId, int]:
    """Return the bytes that each OSD lacks for all data that the drain must still send there or bring back."""
    moves: tuple[Move, ...] = (list_returning_moves if _comes_back(drain) else list_remaining_moves)(
        view, drain
    )
    coming: Counter[OsdId] = Counter()
    for move in moves:
        coming[move.target] += move.bytes
    free = compute_osd_capacity(context.survey, policy, promised_by_others(context, view, drain))
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
    no_room_back = drain.state is DrainState.CANCELLING and HoldReason.SPACE in held_for
    return no_room_back or now - drain.held_since >= policy.ways_out_after


def _comes_back(drain: Drain) -> bool:
    return DrainState.CANCELLING in (drain.state, drain.resume_to)


def _list_stray_targets(view: ClusterView, drain: Drain, context: Context, full: OsdCapacity) -> set[OsdId]:
    """Return the OSDs that PGs go to when an emptied drain gives back upmap items that are not wanted any
    more.
    """
    if drain.intent is not Intent.REPLACE:
        return set()
    strays = find_stray_upmaps(view, drain, context, full)
    raw = compute_up_sets(view, (), strays, with_upmaps=False)
    return {
        osd
        for pg, pairs in strays.items()
        for osd, _ in bound_for(view, view.pgs[pg], apply_upmap_pairs(raw[pg], pairs))
    }


def _takes_data(view: ClusterView, target: OsdId, full: OsdCapacity) -> bool:
    osd, after = view.osds.get(target), full.fullness(target)
    known = osd is not None and osd.up and osd.reweight > 0
    return known and after is not None and after <= full.limit


def _name_osds(osds: tuple[OsdId, ...]) -> str:
    return ", ".join(f"osd.{osd}" for osd in osds)
