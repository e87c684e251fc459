"""The plan of a drain: where every PG of its OSDs goes, in which order and by which mechanic.

The final map is CRUSH's own, with the override of the suspect (and of everything else that drains) at 0; so only the
suspect's PGs change. A target that would pass its limit gives way to a less full legal one.
"""

from __future__ import annotations

from predrain.actions.cluster.view import ClusterView, Pg
from predrain.actions.core.capacity import OsdCapacity, promised_by_others, room
from predrain.actions.core.pg_survey import whole
from predrain.actions.core.policy import Policy
from predrain.actions.core.priority import by_risk
from predrain.actions.core.situation import Context
from predrain.actions.core.verdicts import count
from predrain.actions.placement.what_if import placed, stirred_by, why_no_crush_weight, why_no_upmap
from predrain.actions.planning.agreement import disagreement
from predrain.actions.planning.figures import Draft, sealed, unplaceable
from predrain.actions.planning.inside import inside_host
from predrain.actions.planning.routes import moves_between, routes
from predrain.actions.planning.sickness import hurts, may_stop
from predrain.data.drain import Drain, Mechanic, Move, Plan
from predrain.data.ids import OsdId, PgId

_LADDER_BY_WEIGHT = (
    "Ladder by CRUSH weight: PGs of others move too, as much again for each bucket level above."
)
_LADDER_BY_OVERRIDE = "Ladder by override reweight: no PG can come first, or be led past a full target."
_WALK_INSIDE = (
    "Walk by upmap: the final map at override 0 would not be whole, so there is no place to walk to."
)


def plan_emptying(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Plan:
    """The plan that leaves no PG on the drain's OSDs. Raises CannotPlace where the map cannot be computed."""
    leaving = frozenset(drain.osds)
    out = leaving | context.draining()
    on_it = [pg for pg in view.pgs.values() if not leaving.isdisjoint(pg.up)]
    ordered = by_risk(view, on_it, leaving, context.outlooks)
    space = room(context.survey, policy, promised_by_others(context, view, drain))
    if unlike := disagreement(view, ordered, context.survey, drain.osds):
        return unplaceable(view, drain, unlike)
    final = placed(view, out, [pg.id for pg in ordered])
    homeless = [pg.id for pg in ordered if not whole(final[pg.id], view.pools[pg.pool].size)]
    if homeless:
        draft = _by_weight(view, drain, context, homeless, out, space)
    elif no_upmap := why_no_upmap(view):
        draft = _by_override(view, drain, ordered, final, no_upmap, space)
    else:
        draft = _by_walk(view, drain, context, ordered, final, out, space)
    return sealed(view, drain, policy, context, draft, space)


def _by_walk(
    view: ClusterView,
    drain: Drain,
    context: Context,
    ordered: list[Pg],
    final: dict[PgId, tuple[int, ...]],
    out: frozenset[OsdId],
    space: OsdCapacity,
) -> Draft:
    leaving = frozenset(drain.osds)
    found = routes(view, ordered, final, leaving, out, space, frozenset(drain.avoided))
    why = "each PG goes straight to its final place, a few at a time; nothing else moves"
    rejected = [_LADDER_BY_OVERRIDE, _LADDER_BY_WEIGHT]
    mechanic = Mechanic.UPMAP_WALK
    if sick := hurts(drain, context):
        mechanic = Mechanic.REBUILD
        shards = sum(1 for pg in ordered if view.pools[pg.pool].erasure)
        why = f"{sick}: it first stops leading PGs, so that copies are read from the others; then {why}"
        if shards:
            why += f". Of {count(shards, 'erasure-coded PG')} its shards are read all the same"
        rejected.append(may_stop(view, drain, context))
    shared = [route.shares for route in found if route.shares]
    if shared:
        why += f"; {shared[0]}, and {len(shared) - 1} more" if len(shared) > 1 else f"; {shared[0]}"
    stirred, tail, told = _afterwards(view, drain, context)
    return Draft(
        mechanic,
        why + told,
        (*_begun(view, drain), *(move for route in found for move in route.moves)),
        (*_refuse_removal(view, drain), *(route.problem for route in found if route.problem)),
        tuple(rejected),
        stirred,
        tail,
    )


def _by_override(
    view: ClusterView,
    drain: Drain,
    ordered: list[Pg],
    final: dict[PgId, tuple[int, ...]],
    no_upmap: str,
    space: OsdCapacity,
) -> Draft:
    moves = [move for pg in ordered for move in moves_between(pg, final[pg.id], drain.osds)]
    for move in moves:
        space.promise(move.target, move.bytes)
    why = f"upmaps are not to be had ({no_upmap}); rungs of the override move a few PGs each"
    rejected = (f"Walk by upmap: {no_upmap}.", _LADDER_BY_WEIGHT)
    refusals: tuple[str, ...] = ()
    if drain.intent.removes_osd:
        refusals = (
            f"A disk that goes for good ends at CRUSH weight 0, and nothing can be kept in place then: {no_upmap}. "
            "Drain it to be replaced, and take the weight away by hand.",
        )
    return Draft(Mechanic.OVERRIDE_LADDER, why, (*_begun(view, drain), *moves), refusals, rejected)


def _by_weight(
    view: ClusterView,
    drain: Drain,
    context: Context,
    homeless: list[PgId],
    out: frozenset[OsdId],
    space: OsdCapacity,
) -> Draft:
    ordered = by_risk(view, view.pgs.values(), frozenset(drain.osds), context.outlooks)
    inside = inside_host(view, drain, homeless, out, ordered, context.survey.restless)
    for move in inside.moves:
        space.promise(move.target, move.bytes)
    return Draft(
        Mechanic.CRUSH_LADDER,
        inside.why,
        (*_begun(view, drain), *inside.moves),
        (inside.problem,) if inside.problem else (),
        (_WALK_INSIDE, "Ladder by override reweight: it ends at the same map as the walk."),
        inside.stirred,
    )


def _afterwards(view: ClusterView, drain: Drain, context: Context) -> tuple[tuple[PgId, ...], int, str]:
    """What CRUSH weight 0 stirs at the end of a removal, how many of it would move, and a clause that says so."""
    if not drain.intent.removes_osd or why_no_crush_weight(view):
        return (), 0, ""
    stirred = tuple(sorted(stirred_by(view, drain.osds, {}, context.survey.restless)))
    others = sum(1 for pg in stirred if set(drain.osds).isdisjoint(view.pgs[pg].up))
    told = (
        f". At the end the CRUSH weight goes to 0 in rungs, under norebalance and nobackfill for seconds each; about "
        f"{count(others, 'PG')} of others are pinned where they are, so that nothing moves"
    )
    return stirred, len(stirred), told


def _refuse_removal(view: ClusterView, drain: Drain) -> tuple[str, ...]:
    """Why a disk cannot go for good, where CRUSH weights are not to be changed."""
    why = why_no_crush_weight(view)
    if not drain.intent.removes_osd or not why:
        return ()
    return (
        f"A disk that goes for good ends at CRUSH weight 0. {why}. Drain it to be replaced, and take the weight away "
        "by hand; or remove the weight-sets first (ceph osd crush weight-set rm-compat).",
    )


def _begun(view: ClusterView, drain: Drain) -> tuple[Move, ...]:
    """Moves of the old plan that are made or under way; they stay in the count."""
    if drain.plan is None:
        return ()
    return tuple(
        m for m in drain.plan.moves if (pg := view.pgs.get(m.pg)) is not None and m.source not in pg.up
    )
