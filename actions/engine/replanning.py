"""When a plan is made anew."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.verdicts import count
from predrain.actions.placement.what_if import fingerprint
from predrain.data.clock import lately
from predrain.data.drain import Drain, Plan

SHOWN = timedelta(hours=6)
"""How long a person is shown the plan of a proposal on an unchanged map; sizes change without it."""


def map_changed(view: ClusterView, drain: Drain, context: Context) -> bool:
    """Whether the map is another one than when the drain was planned, as far as is known."""
    known = context.memory.planned.get(drain.id)
    return known is None or known[0] != fingerprint(view, drain, context.draining())


def planned_before(drain: Drain, context: Context, most: timedelta) -> bool:
    """Whether the drain was planned longer ago than that, as far as is known."""
    known = context.memory.planned.get(drain.id)
    return known is None or not lately(known[1], context.now, most)


def outdated(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> bool:
    """Whether a proposal that waits for a person shows a plan of a cluster that may be another one by now. Of
    sizes that are not known, and of OSDs that are gone, nothing better is planned.
    """
    if not view.statistics_known or not view.osds.keys() >= set(drain.osds):
        return False
    most = policy.plan_again_after if drain.plan is not None and drain.plan.refusals else SHOWN
    return map_changed(view, drain, context) or planned_before(drain, context, most)


def anew(drain: Drain, made: Plan) -> tuple[Drain, str]:
    """The drain with a new plan for what is left of it, and the journal's words for that."""
    pgs = len({move.pg for move in made.moves})
    moved = min(drain.progress.moved_pgs, pgs)
    progress = replace(drain.progress, planned_pgs=pgs, planned_bytes=made.bytes, moved_pgs=moved)
    fullest = "unknown" if made.fullest_after is None else f"{made.fullest_after:.0%}"
    return replace(
        drain, plan=made, progress=progress
    ), f"plan anew: {count(pgs, 'PG')}, fullest target {fullest}"
