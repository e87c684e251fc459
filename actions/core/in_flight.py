"""What is on its way because of us, and how much more may start now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from predrain.actions.cluster.view import Pg
from predrain.actions.core.capacity import OsdCapacity, remaining
from predrain.actions.core.claimed_settings import pinned
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context, engaged
from predrain.actions.core.state_machine import ENDED
from predrain.actions.core.throttles import unheld
from predrain.data.drain import Drain, DrainState, Mechanic
from predrain.data.ids import OsdId, PgId

WALKING = (Mechanic.UPMAP_WALK, Mechanic.REBUILD)
_FORWARD = frozenset(
    {
        DrainState.PROPOSED,
        DrainState.APPROVED,
        DrainState.PREPARING,
        DrainState.DRAINING,
        DrainState.HOLDING,
    }
)
_MOVING = frozenset({DrainState.DRAINING, DrainState.HOLDING, DrainState.CANCELLING})


def in_flight(drain: Drain, context: Context) -> tuple[Pg, ...]:
    """PGs of the drain that are not yet at rest where it sent them; on its way back also those whose pins it gave up,
    for its weights move them all the same.
    """
    restless = context.survey.restless
    own = {move.pg for move in drain.plan.moves} if drain.plan else set()
    own |= pinned(drain.ours).keys()
    leaving, cancelling = set(drain.osds), drain.state is DrainState.CANCELLING
    if cancelling:
        own |= pinned(drain.saved).keys()
    return tuple(
        pg
        for id_, pg in restless.items()
        if (id_ in own and (pg.up != pg.acting or not leaving & set(pg.up)))
        or leaving & (set(pg.acting) - set(pg.up))
        or (cancelling and leaving & (set(pg.up) - set(pg.acting)))
    )


def list_own_pgs(drain: Drain) -> frozenset[PgId]:
    """PGs that a drain moves, has pinned, or no longer leads."""
    plan = drain.plan
    planned = {move.pg for move in plan.moves} | set(plan.stirred) if plan else set()
    return frozenset(planned) | pinned(drain.ours).keys()


def list_ready_pgs(drain: Drain, context: Context) -> frozenset[PgId]:
    """PGs at rest that a drain which goes PG by PG has still to send; empty where it goes otherwise, or has none."""
    if drain.plan is None or drain.plan.mechanic not in WALKING or drain.state not in _FORWARD:
        return frozenset()
    survey = context.survey
    left = {move.pg for move in remaining(survey.view, drain)}
    return frozenset(left - survey.restless.keys() - survey.broken.keys())


def list_touched_pgs(drain: Drain, context: Context) -> frozenset[PgId]:
    """PGs that the drain's next step may touch: those that are ready where there are any, else every one of its plan
    and its pins, and of those that are not at rest every one that names its OSDs.
    """
    if ready := list_ready_pgs(drain, context):
        return ready
    leaving, survey = set(drain.osds), context.survey
    unsafe = (*survey.restless.values(), *survey.broken.values())
    return list_own_pgs(drain) | {pg.id for pg in unsafe if leaving & {*pg.up, *pg.acting}}


def at_work(drain: Drain) -> frozenset[OsdId]:
    """OSDs that a drain reads from or writes to, from first to last: sources and targets of its plan."""
    moves = drain.plan.moves if drain.plan else ()
    return frozenset(drain.osds) | {osd for move in moves for osd in (move.source, move.target)}


def watched(drains: Iterable[Drain]) -> frozenset[OsdId]:
    """OSDs whose latency and reservations matter: those at work for any drain that has not ended, or soon to be."""
    return frozenset(osd for drain in drains if drain.state not in ENDED for osd in at_work(drain))


def stirrable(drain: Drain, context: Context) -> tuple[PgId, ...]:
    """PGs that the drain's weights can move, by its plan; empty where nobody knows, for another drain has changed
    weights since, which alone does not make a plan anew.
    """
    alone = context.draining() <= set(drain.osds)
    return drain.plan.stirred if drain.plan and alone else ()


@dataclass(slots=True)
class Allowance:
    """What all drains together may still start in this look. Mutable on purpose: drains draw on it in
    turn.
    """

    peering: int
    flights: int
    per_target: int
    room: OsdCapacity
    arriving: dict[OsdId, int]
    taken: set[PgId] = field(default_factory=set)
    led: set[OsdId] = field(default_factory=set)
    """OSDs whose primary affinity changes in this look."""

    def starts(self, budget: int, mine: int) -> int:
        """How many PGs a drain with `mine` on their way and a pace of `budget` may start."""
        return max(0, min(self.peering, self.flights, budget - mine))

    def send(self, pg: PgId, targets: Iterable[tuple[OsdId, int]]) -> None:
        """Draw one PG with its (target, bytes)."""
        self.taken.add(pg)
        self.peering -= 1
        self.flights -= 1
        for target, size in targets:
            self.arriving[target] = self.arriving.get(target, 0) + 1
            self.room.promise(target, size)

    def stir(self, pgs: Iterable[PgId]) -> None:
        """Draw PGs that will peer and move nothing."""
        for pg in pgs:
            self.taken.add(pg)
            self.peering -= 1


def allowance(context: Context, policy: Policy, room: OsdCapacity) -> Allowance:
    """What is left of the budgets: nothing starts while a PG of ours peers, and PGs of ours on their way are already
    spent. Where the throttle of a drain that moves does not hold, all drains together have one PG on its way.
    """
    survey = context.survey
    touched = context.touched()
    peers = any(id_ in touched and "active" not in pg.states for id_, pg in survey.restless.items())
    flying = {pg.id for drain in context.drains if engaged(drain) for pg in in_flight(drain, context)}
    moving = (drain for drain in context.drains if drain.state in _MOVING)
    loose = any(unheld(survey.view, at_work(drain)) for drain in moving)
    unreported = len(context.memory.unreported)  # they may peer now
    return Allowance(
        peering=0 if peers else max(0, policy.peering_max - unreported),
        flights=(1 if loose else policy.in_flight_max) - len(flying),
        per_target=policy.per_target_max,
        room=room,
        arriving=dict(survey.incoming_pgs),
    )
