"""What is on its way because of us, and how much more may start now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from actions.cluster.view import Pg
from actions.context import Context, engaged
from actions.ledger import pinned
from actions.policy import Policy
from actions.space import Room
from data.drain import Drain
from data.ids import OsdId, PgId


def in_flight(drain: Drain, context: Context) -> tuple[Pg, ...]:
    """PGs of the drain that are not yet at rest where it sent them."""
    restless = context.survey.restless
    own = {move.pg for move in drain.plan.moves} if drain.plan else set()
    own |= pinned(drain.ours).keys()
    leaving = set(drain.osds)
    return tuple(
        pg
        for id_, pg in restless.items()
        if (id_ in own and (pg.up != pg.acting or not leaving & set(pg.up)))
        or leaving & (set(pg.acting) - set(pg.up))
    )


@dataclass(slots=True)
class Allowance:
    """What all drains together may still start in this look. Mutable on purpose: drains draw on it in
    turn.
    """

    peering: int
    flights: int
    per_target: int
    room: Room
    arriving: dict[OsdId, int]
    taken: set[PgId] = field(default_factory=set)

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


def allowance(context: Context, policy: Policy, room: Room) -> Allowance:
    """What is left of the budgets: PGs of ours that peer now and PGs of ours on their way are already
    spent.
    """
    survey = context.survey
    touched = context.touched()
    peering = sum(1 for id_, pg in survey.restless.items() if id_ in touched and "active" not in pg.states)
    flying = {pg.id for drain in context.drains if engaged(drain) for pg in in_flight(drain, context)}
    return Allowance(
        peering=policy.peering_max - peering,
        flights=policy.in_flight_max - len(flying),
        per_target=policy.per_target_max,
        room=room,
        arriving=dict(survey.incoming_pgs),
    )
