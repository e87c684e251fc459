"""The PGs that are on their way because of our commands, and the number of PGs that may still start now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from predrain.actions.cluster.cluster_view import Pg
from predrain.actions.core.capacity import OsdCapacity, list_remaining_moves
from predrain.actions.core.claimed_settings import collect_upmap_items
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.held_throttles import explain_unreliable_throttle
from predrain.actions.core.situation import Context, is_drain_engaged
from predrain.actions.core.state_machine import ENDED
from predrain.data.drain import Drain, DrainState, Mechanic
from predrain.data.identity_memo import remember_results
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
    """Return the PGs of the drain that are not yet at rest at their destination.

    While the drain is being cancelled, the PGs whose upmap items it gave up count too, because its weights
    still move them.
    """
    cancelling, survey = drain.state is DrainState.CANCELLING, context.survey
    own = {move.pg for move in drain.plan.moves} if drain.plan else set()
    own |= collect_upmap_items(drain.ours).keys()
    if cancelling:
        own |= collect_upmap_items(drain.saved).keys()
    leaving = set(drain.osds)
    return tuple(
        pg
        for pg in survey.list_unclean_pgs(own | survey.find_ids_by_osds(drain.osds))
        if (pg.id in own and (pg.up != pg.acting or not leaving & set(pg.up)))
        or leaving & (set(pg.acting) - set(pg.up))
        or (cancelling and leaving & (set(pg.up) - set(pg.acting)))
    )


def list_own_pgs(drain: Drain) -> frozenset[PgId]:
    """Return the PGs that a drain moves, maps by an upmap item, or takes the primary role from."""
    plan = drain.plan
    planned = {move.pg for move in plan.moves} | set(plan.affected_pgs) if plan else set()
    return frozenset(planned) | collect_upmap_items(drain.ours).keys()


def list_ready_pgs(drain: Drain, context: Context) -> frozenset[PgId]:
    """Return the PGs at rest that a drain by single PGs must still move.

    The set is empty if the drain uses another mechanic or has no such PG left.
    """
    if drain.plan is None or drain.plan.mechanic not in WALKING or drain.state not in _FORWARD:
        return frozenset()
    survey = context.survey
    left = (move.pg for move in list_remaining_moves(survey.view, drain))
    return frozenset(pg for pg in left if pg not in survey.unclean and pg not in survey.broken)


@remember_results(limit=2)
def list_touched_pgs(drain: Drain, context: Context) -> frozenset[PgId]:
    """Return the PGs that the drain's next step may touch.

    The step may touch the ready PGs if there are any. Otherwise it may touch all PGs of the plan and its
    upmap items, and every PG that is not at rest and names one of the drain's OSDs.
    """
    if ready := list_ready_pgs(drain, context):
        return ready
    survey = context.survey
    unsafe = (
        pg
        for id_ in survey.find_ids_by_osds(drain.osds)
        for pg in (survey.unclean.get(id_), survey.broken.get(id_))
        if pg is not None
    )
    return list_own_pgs(drain) | {pg.id for pg in unsafe if not {*pg.up, *pg.acting}.isdisjoint(drain.osds)}


def at_work(drain: Drain) -> frozenset[OsdId]:
    """Return all OSDs that a drain reads from or writes to: the sources and targets of its whole plan."""
    moves = drain.plan.moves if drain.plan else ()
    return frozenset(drain.osds) | {osd for move in moves for osd in (move.source, move.target)}


def list_watched_osds(drains: Iterable[Drain]) -> frozenset[OsdId]:
    """Return the OSDs whose latency and reservations matter: those of all drains that have not ended."""
    return frozenset(osd for drain in drains if drain.state not in ENDED for osd in at_work(drain))


def list_weight_affected_pgs(drain: Drain, context: Context) -> tuple[PgId, ...]:
    """Return the PGs that the drain's weights can move, by its plan.

    The tuple is empty if they are not known: another drain has changed weights since, and that alone does not
    cause a new plan.
    """
    alone = context.list_draining_osds() <= set(drain.osds)
    return drain.plan.affected_pgs if drain.plan and alone else ()


@dataclass(slots=True)
class Allowance:
    """The PGs that all drains together may still start in this poll. Mutable, because each drain in turn
    draws on it.
    """

    peering: int
    flights: int
    per_target: int
    room: OsdCapacity
    arriving: dict[OsdId, int]
    taken: set[PgId] = field(default_factory=set)
    led: set[OsdId] = field(default_factory=set)
    """OSDs whose primary affinity changes in this poll."""

    def count_possible_starts(self, budget: int, mine: int) -> int:
        """Return how many PGs a drain with `mine` PGs on their way and a pace of `pace` may start."""
        return max(0, min(self.peering, self.flights, budget - mine))

    def reserve_move(self, pg: PgId, targets: Iterable[tuple[OsdId, int]]) -> None:
        """Count one PG with its (target, bytes) as started."""
        self.taken.add(pg)
        self.peering -= 1
        self.flights -= 1
        for target, size in targets:
            self.arriving[target] = self.arriving.get(target, 0) + 1
            self.room.promise(target, size)

    def reserve_peering(self, pgs: Iterable[PgId]) -> None:
        """Count PGs that will peer and move no data."""
        for pg in pgs:
            self.taken.add(pg)
            self.peering -= 1


def compute_allowance(context: Context, policy: Policy, room: OsdCapacity) -> Allowance:
    """Compute what is left of the budgets.

    Nothing starts while a PG of ours peers, and PGs of ours on their way count as used. If the throttle of a
    moving drain is not reliable, all drains together have one PG on its way.
    """
    survey = context.survey
    touched = context.list_affected_pgs()
    peers = any(id_ in touched and "active" not in pg.states for id_, pg in survey.unclean.items())
    flying = {
        pg.id for drain in context.drains if is_drain_engaged(drain) for pg in in_flight(drain, context)
    }
    moving = (drain for drain in context.drains if drain.state in _MOVING)
    loose = any(explain_unreliable_throttle(survey.view, at_work(drain)) for drain in moving)
    unreported = len(context.memory.unreported)  # they may peer now
    return Allowance(
        peering=0 if peers else max(0, policy.peering_max - unreported),
        flights=(1 if loose else policy.in_flight_max) - len(flying),
        per_target=policy.per_target_max,
        room=room,
        arriving=dict(survey.incoming_pgs),
    )
