"""The plan of a drain: each PG's destination, the order, the mechanic and the reason, computed before
anything moves. Decides when a new plan is made.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.crush.crush_rules import CannotPlace
from predrain.actions.engine.strategies import STRATEGIES
from predrain.actions.placement.what_if import compute_map_fingerprint
from predrain.actions.planning.plan_figures import build_unplaceable_plan
from predrain.data.clock import is_within_last
from predrain.data.drain import Drain, Plan
from predrain.data.messages import format_count

SHOWN = timedelta(hours=6)
"""The time for which a proposal's plan is shown on an unchanged map; sizes change without a change of the
map.
"""


def plan_drain(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Plan:
    """Return the plan of a drain that has not begun, or of the rest of one; moves already made stay at its
    head.

    If the map cannot be computed, the plan is a refused one with the reason. The function does not raise
    CannotPlace.
    """
    try:
        return STRATEGIES[drain.intent].draw_plan(view, drain, policy, context)
    except CannotPlace as why:
        return build_unplaceable_plan(view, drain, why.refusal)


def is_different_plan(old: Plan | None, new: Plan) -> bool:
    """Return whether a new plan does something else than the old one."""
    return old is None or _build_action_key(old) != _build_action_key(new)


def _build_action_key(made: Plan) -> tuple[object, ...]:
    return made.mechanic, made.moves, made.refusals, made.affected_pgs, made.fullest_after


def map_changed(view: ClusterView, drain: Drain, context: Context) -> bool:
    """Return whether the map has changed since the drain was planned; True if that is not known."""
    known = context.memory.planned.get(drain.id)
    return known is None or known[0] != compute_map_fingerprint(view, drain, context.list_draining_osds())


def planned_before(drain: Drain, context: Context, most: timedelta) -> bool:
    """Return whether the drain was planned longer ago than `most`; True if that is not known."""
    known = context.memory.planned.get(drain.id)
    return known is None or not is_within_last(known[1], context.now, most)


def is_proposal_outdated(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> bool:
    """Return whether a proposal that waits for a person may show an outdated plan.

    If sizes are unknown or OSDs are gone, no better plan is possible, so the result is False.
    """
    if not view.statistics_known or not view.osds.keys() >= set(drain.osds):
        return False
    most = policy.replan_after if drain.plan is not None and drain.plan.refusals else SHOWN
    return map_changed(view, drain, context) or planned_before(drain, context, most)


def replan_drain(drain: Drain, made: Plan) -> tuple[Drain, str]:
    """Return the drain with a new plan for the rest of it, and the journal's words for the change."""
    pgs = len({move.pg for move in made.moves})
    moved = min(drain.progress.moved_pgs, pgs)
    progress = replace(drain.progress, planned_pgs=pgs, planned_bytes=made.bytes, moved_pgs=moved)
    fullest = "unknown" if made.fullest_after is None else f"{made.fullest_after:.0%}"
    return replace(
        drain, plan=made, progress=progress
    ), f"plan anew: {format_count(pgs, 'PG')}, fullest target {fullest}"
