"""The plan of a fill: a new, empty disk in a drained slot gets its share, a few PGs at a time."""

from __future__ import annotations

from predrain.actions.cluster.cluster_view import ClusterView, Osd
from predrain.actions.core.capacity import OsdCapacity, compute_osd_capacity, promised_by_others
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.mechanics.drain_steps import FULL
from predrain.actions.placement.what_if import compute_up_sets, find_weight_affected_pgs
from predrain.actions.planning.pg_routes import moves_between
from predrain.actions.planning.plan_figures import PlanDraft, build_plan_from_draft
from predrain.data.drain import Drain, DrainState, Mechanic, Move, Plan
from predrain.data.ids import OsdId, PgId
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind

_BEFORE = frozenset({DrainState.PROPOSED, DrainState.APPROVED})


def plan_filling(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Plan:
    """Return the plan that gives the drain's OSDs their share. Raises CannotPlace if the map cannot be
    computed.
    """
    space = compute_osd_capacity(context.survey, policy, promised_by_others(context, view, drain))
    return build_plan_from_draft(view, drain, policy, context, _draft_filling(view, drain, space), space)


def _draft_filling(view: ClusterView, drain: Drain, space: OsdCapacity) -> PlanDraft:
    """Return the moves until the drain's OSDs are at override 1, and the problems that forbid them now."""
    problems = tuple(problem for osd in drain.osds if (problem := _find_obstacle(view, drain, osd)))
    why = "the override goes up in reweight steps, each of which moves a few PGs in; the rest stays in place until then"
    if problems:
        return PlanDraft(Mechanic.OVERRIDE_LADDER, why, refusals=problems)
    candidates = find_weight_affected_pgs(view, drain.osds, {}) | _list_planned_pgs(drain)
    final = compute_up_sets(view, (), candidates, weights=dict.fromkeys(drain.osds, FULL))
    moves: list[Move] = [
        move
        for pg in sorted(candidates)
        if pg in view.pgs and pg in final and not set(drain.osds).isdisjoint(final[pg])
        for move in moves_between(view.pgs[pg], final[pg], ())
    ]
    for move in moves:
        space.promise(move.target, move.bytes)
    return PlanDraft(Mechanic.OVERRIDE_LADDER, why, (*_list_started_moves(view, drain), *moves))


def _find_obstacle(view: ClusterView, drain: Drain, osd: OsdId) -> PlanRefusal | None:
    found: Osd | None = view.osds.get(osd)
    if found is None:
        return PlanRefusal(PlanRefusalKind.FILL_WITHOUT_OSD, osd=osd)
    if not found.up:
        return PlanRefusal(PlanRefusalKind.FILL_OF_DOWN_OSD, osd=osd)
    if found.crush_weight == 0:
        return PlanRefusal(PlanRefusalKind.FILL_WITHOUT_WEIGHT, osd=osd)
    if found.reweight == FULL and drain.state in _BEFORE:
        return PlanRefusal(PlanRefusalKind.FILL_OF_IN_OSD, osd=osd)
    return None


def _list_planned_pgs(drain: Drain) -> frozenset[PgId]:
    return frozenset(move.pg for move in drain.plan.moves) if drain.plan else frozenset()


def _list_started_moves(view: ClusterView, drain: Drain) -> tuple[Move, ...]:
    """Return the old plan's moves that are made or under way; they stay in the count."""
    moves = drain.plan.moves if drain.plan else ()
    return tuple(m for m in moves if m.pg in view.pgs and m.target in view.pgs[m.pg].up)
