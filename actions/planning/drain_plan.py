"""The plan of a drain: the destination of every PG of its OSDs, the order, and the mechanic.

The final map is CRUSH's own, with the override of the suspect and of all other draining OSDs at 0. Only the
suspect's PGs change. If a target would pass its limit, a less full legal one takes its place.
"""

from __future__ import annotations

from dataclasses import replace

from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.cluster.osd_layout import find_osd_layout
from predrain.actions.cluster.pg_index import find_pg_index
from predrain.actions.core.capacity import OsdCapacity, compute_osd_capacity, promised_by_others
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.pg_survey import has_all_members
from predrain.actions.core.priority import by_risk
from predrain.actions.core.situation import Context
from predrain.actions.placement.what_if import (
    Placement,
    compute_up_sets,
    find_weight_affected_pgs,
    has_weight_sets,
    why_no_upmap,
)
from predrain.actions.planning.pg_routes import find_pg_routes, moves_between
from predrain.actions.planning.placement_agreement import find_placement_mismatch
from predrain.actions.planning.plan_figures import PlanDraft, build_plan_from_draft, build_unplaceable_plan
from predrain.actions.planning.read_harm import explain_harmful_reads, may_stop
from predrain.actions.planning.same_domain_plan import inside_host
from predrain.data.drain import Drain, Mechanic, Move, Plan
from predrain.data.ids import OsdId, PgId
from predrain.data.messages import format_count
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind

_LADDER_BY_WEIGHT = (
    "Ladder by CRUSH weight: PGs of others move too, as much again for each bucket level above."
)
_LADDER_BY_OVERRIDE = "Ladder by override reweight: no PG can come first, or be led past a full target."
_WALK_INSIDE = (
    "Walk by upmap: the final map at override 0 would not be whole, so there is no place to walk to."
)


def plan_emptying(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Plan:
    """Return the plan that leaves no PG on the drain's OSDs. Raises CannotPlace if the map cannot be
    computed.
    """
    leaving = frozenset(drain.osds)
    out = leaving | context.list_draining_osds()
    named = find_pg_index(view.pgs).list_pgs_of_any(leaving)
    on_it = [pg for pg in named if not leaving.isdisjoint(pg.up)]
    ordered = by_risk(view, on_it, leaving, context.outlooks)
    space = compute_osd_capacity(context.survey, policy, promised_by_others(context, view, drain))
    if unlike := find_placement_mismatch(view, ordered, context.survey, drain.osds):
        return build_unplaceable_plan(view, drain, unlike)
    short = _list_pgs_short_of_down_osds(view, ordered)
    unplanned = {pg.id for pg in short}
    ordered = [pg for pg in ordered if pg.id not in unplanned]
    final = compute_up_sets(view, out, [pg.id for pg in ordered])
    homeless = _list_homeless_pgs(view, ordered, final, out)
    if homeless:
        draft = _by_weight(view, drain, context, homeless, out, space)
    elif no_upmap := why_no_upmap(view):
        draft = _by_override(view, drain, ordered, final, no_upmap, space)
    else:
        draft = _by_walk(view, drain, context, ordered, final, out, space)
    if short:
        lacking = (
            f"not planned before every OSD is up or out: {format_count(len(short), 'PG')} that lack a member"
        )
        draft = replace(draft, why=f"{draft.why}; {lacking}")
    return build_plan_from_draft(view, drain, policy, context, draft, space)


def _list_pgs_short_of_down_osds(view: ClusterView, ordered: list[Pg]) -> list[Pg]:
    """Return the PGs that lack a member now because an OSD is down and in.

    A later plan moves these PGs, once the OSD is up or out. Until then CRUSH has no complete place for them.
    """
    layout = find_osd_layout(view.osds)
    if layout.down <= layout.out:
        return []
    return [pg for pg in ordered if not has_all_members(pg.up, view.pools[pg.pool].size)]


def _list_homeless_pgs(
    view: ClusterView, ordered: list[Pg], final: Placement, out: frozenset[OsdId]
) -> list[PgId]:
    """Return the PGs for which CRUSH finds no complete place without `out`, even if every OSD were up."""

    def list_incomplete(placement: Placement, pgs: list[Pg]) -> list[Pg]:
        return [pg for pg in pgs if not has_all_members(placement[pg.id], view.pools[pg.pool].size)]

    incomplete = list_incomplete(final, ordered)
    back = compute_up_sets(view, out, [pg.id for pg in incomplete], all_up=True)
    return [pg.id for pg in list_incomplete(back, incomplete)]


def _by_walk(
    view: ClusterView,
    drain: Drain,
    context: Context,
    ordered: list[Pg],
    final: dict[PgId, tuple[int, ...]],
    out: frozenset[OsdId],
    space: OsdCapacity,
) -> PlanDraft:
    leaving = frozenset(drain.osds)
    found = find_pg_routes(view, ordered, final, leaving, out, space, frozenset(drain.avoided))
    why = "each PG goes straight to its final place, a few at a time; nothing else moves"
    rejected = [_LADDER_BY_OVERRIDE, _LADDER_BY_WEIGHT]
    mechanic = Mechanic.UPMAP_WALK
    if sick := explain_harmful_reads(drain, context):
        mechanic = Mechanic.REBUILD
        shards = sum(1 for pg in ordered if view.pools[pg.pool].erasure)
        why = f"{sick}: it first becomes the primary of no PG, so that copies are read from the others; then {why}"
        if shards:
            why += f". Of {format_count(shards, 'erasure-coded PG')} its shards are read all the same"
        rejected.append(may_stop(view, drain, context))
    shared = [route.shares for route in found if route.shares]
    if shared:
        why += f"; {shared[0]}, and {len(shared) - 1} more" if len(shared) > 1 else f"; {shared[0]}"
    affected, tail, told = _find_removal_effects(view, drain, context)
    return PlanDraft(
        mechanic,
        why + told,
        (*_list_started_moves(view, drain), *(move for route in found for move in route.moves)),
        (*_refuse_removal(view, drain), *(route.problem for route in found if route.problem)),
        tuple(rejected),
        affected,
        tail,
    )


def _by_override(
    view: ClusterView,
    drain: Drain,
    ordered: list[Pg],
    final: dict[PgId, tuple[int, ...]],
    no_upmap: str,
    space: OsdCapacity,
) -> PlanDraft:
    moves = [move for pg in ordered for move in moves_between(pg, final[pg.id], drain.osds)]
    for move in moves:
        space.promise(move.target, move.bytes)
    why = f"upmaps are not to be had ({no_upmap}); each step of the override reweight moves a few PGs"
    rejected = (f"Walk by upmap: {no_upmap}.", _LADDER_BY_WEIGHT)
    refusals: tuple[PlanRefusal, ...] = ()
    if drain.intent.removes_osd:
        full = PlanRefusal(PlanRefusalKind.REMOVAL_WITH_FULL_UPMAPS)
        old = PlanRefusal(PlanRefusalKind.REMOVAL_WITH_OLD_CLIENTS, name=view.require_min_compat_client)
        refusals = (full if view.has_full_upmaps else old,)
    return PlanDraft(
        Mechanic.OVERRIDE_LADDER, why, (*_list_started_moves(view, drain), *moves), refusals, rejected
    )


def _by_weight(
    view: ClusterView,
    drain: Drain,
    context: Context,
    homeless: list[PgId],
    out: frozenset[OsdId],
    space: OsdCapacity,
) -> PlanDraft:
    ordered = by_risk(view, view.pgs.values(), frozenset(drain.osds), context.outlooks)
    inside = inside_host(view, drain, homeless, out, ordered, context.survey.unclean)
    for move in inside.moves:
        space.promise(move.target, move.bytes)
    return PlanDraft(
        Mechanic.CRUSH_LADDER,
        inside.why,
        (*_list_started_moves(view, drain), *inside.moves),
        (inside.problem,) if inside.problem else (),
        (_WALK_INSIDE, "Ladder by override reweight: it ends at the same map as the walk."),
        inside.affected,
    )


def _find_removal_effects(
    view: ClusterView, drain: Drain, context: Context
) -> tuple[tuple[PgId, ...], int, str]:
    """Return the PGs that CRUSH weight 0 affects at the end of a removal, their number, and a clause for the
    plan.
    """
    if not drain.intent.removes_osd or has_weight_sets(view):
        return (), 0, ""
    affected = tuple(sorted(find_weight_affected_pgs(view, drain.osds, {}, context.survey.unclean)))
    others = sum(1 for pg in affected if set(drain.osds).isdisjoint(view.pgs[pg].up))
    told = (
        ". At the end the CRUSH weight goes to 0 in reweight steps, each under norebalance and nobackfill for seconds; "
        f"about {format_count(others, 'PG')} of others are kept in place by upmap items, so that nothing moves"
    )
    return affected, len(affected), told


def _refuse_removal(view: ClusterView, drain: Drain) -> tuple[PlanRefusal, ...]:
    """Return why a disk cannot be removed, if CRUSH weights must not be changed; empty otherwise."""
    if drain.intent.removes_osd and has_weight_sets(view):
        return (PlanRefusal(PlanRefusalKind.REMOVAL_WITH_WEIGHT_SETS),)
    return ()


def _list_started_moves(view: ClusterView, drain: Drain) -> tuple[Move, ...]:
    """Return the old plan's moves that are made or under way; they stay in the count."""
    if drain.plan is None:
        return ()
    return tuple(
        m for m in drain.plan.moves if (pg := view.pgs.get(m.pg)) is not None and m.source not in pg.up
    )
