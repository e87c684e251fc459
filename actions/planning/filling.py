"""The way back: how a new, empty disk in a drained slot gets its share, a few PGs at a time."""

from __future__ import annotations

from predrain.actions.cluster.view import ClusterView, Osd
from predrain.actions.core.capacity import OsdCapacity, promised_by_others, room
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.mechanics.filling import FULL
from predrain.actions.placement.what_if import placed, stirred_by
from predrain.actions.planning.figures import Draft, sealed
from predrain.actions.planning.routes import moves_between
from predrain.data.drain import Drain, DrainState, Mechanic, Move, Plan
from predrain.data.ids import OsdId, PgId

_BEFORE = frozenset({DrainState.PROPOSED, DrainState.APPROVED})


def plan_filling(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Plan:
    """The plan that gives the drain's OSDs their share. Raises CannotPlace where the map cannot be computed."""
    space = room(context.survey, policy, promised_by_others(context, view, drain))
    return sealed(view, drain, policy, context, _draft_filling(view, drain, space), space)


def _draft_filling(view: ClusterView, drain: Drain, space: OsdCapacity) -> Draft:
    """The moves that end with the drain's OSDs at override 1, and what forbids them now."""
    problems = tuple(problem for osd in drain.osds if (problem := _not_ready(view, drain, osd)))
    why = "the override goes up in rungs, each taking in a few PGs; the rest stays where it is until its turn"
    if problems:
        return Draft(Mechanic.OVERRIDE_LADDER, why, refusals=problems)
    candidates = stirred_by(view, drain.osds, {}) | _begun(drain)
    final = placed(view, (), candidates, weights=dict.fromkeys(drain.osds, FULL))
    moves: list[Move] = [
        move
        for pg in sorted(candidates)
        if pg in view.pgs and pg in final and not set(drain.osds).isdisjoint(final[pg])
        for move in moves_between(view.pgs[pg], final[pg], ())
    ]
    for move in moves:
        space.promise(move.target, move.bytes)
    return Draft(Mechanic.OVERRIDE_LADDER, why, (*_made(view, drain), *moves))


def _not_ready(view: ClusterView, drain: Drain, osd: OsdId) -> str:
    found: Osd | None = view.osds.get(osd)
    if found is None:
        return f"osd.{osd} is not in the map; make the OSD on the new disk first."
    if not found.up:
        return f"osd.{osd} is down; start it on the new disk first."
    if found.crush_weight == 0:
        return f"osd.{osd} has CRUSH weight 0, so no PG belongs there; give it its weight first, while it is out."
    if found.reweight == FULL and drain.state in _BEFORE:
        return f"osd.{osd} is in already and fills at Ceph's own pace; `ceph osd out {osd}` first, to have it paced."
    return ""


def _begun(drain: Drain) -> frozenset[PgId]:
    return frozenset(move.pg for move in drain.plan.moves) if drain.plan else frozenset()


def _made(view: ClusterView, drain: Drain) -> tuple[Move, ...]:
    """Moves of the old plan that are made or under way; they stay in the count."""
    moves = drain.plan.moves if drain.plan else ()
    return tuple(m for m in moves if m.pg in view.pgs and m.target in view.pgs[m.pg].up)
