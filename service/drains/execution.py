"""What a person asked of drains, carried out by this process's controller."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from predrain.actions.cluster.port import ClusterUnreachable
from predrain.actions.controller.controller import Controller
from predrain.actions.controller.forwarded_requests import Petition, Wish, fulfilled
from predrain.actions.controller.requests import NotLeading
from predrain.actions.engine.proposals import NoSuchTarget
from predrain.data.drain import Drain, DrainStands, Insistence
from predrain.data.store.port import Store
from predrain.service.drains import plan_etags as seals
from predrain.service.drains.drain_requests import NotSeen, PlanMoved, UnknownTarget

_LOOKS = frozenset(
    {
        Wish.HAND_OVER,
        Wish.STAY_DRAINED,
        Wish.GIVE_UP_CANCEL,
        Wish.CHOOSE_OTHER_TARGETS,
        Wish.INSIST,
    }
)
"""Wishes that rest on how the cluster is."""


@dataclass(frozen=True, slots=True)
class WishExecutor:
    """Carries wishes out on one controller."""

    controller: Controller
    store: Store

    def carry_out_once(self, wish: Petition, now: datetime) -> Drain:
        """Do it here, where it is not done already. Raises what the actions room refuses."""
        known = self.store.drain(wish.drain) if wish.drain else None
        if known is None or not fulfilled(wish, known):
            try:
                return self.carry_out(wish, now)
            except DrainStands as standing:
                if not fulfilled(wish, standing.drain):
                    raise
                known = standing.drain
        if why := self.controller.lead(now):  # else it may be so in our store alone
            raise NotLeading(why)
        return known

    def carry_out(self, wish: Petition, now: datetime) -> Drain:
        """Do it here. Raises what the actions room refuses, NotSeen."""
        try:
            return self._carry_out(wish, now)
        except NoSuchTarget as unknown:
            raise UnknownTarget(str(unknown)) from unknown
        except ClusterUnreachable as silent:
            if wish.wish not in _LOOKS:
                raise
            raise NotSeen(f"The cluster does not answer: {silent}") from silent

    def _carry_out(self, wish: Petition, now: datetime) -> Drain:
        requests, id_, caller = self.controller.requests, wish.drain, wish.caller
        match wish.wish:
            case Wish.PROPOSE:
                return self.controller.propose(
                    wish.target,
                    caller,
                    wish.reason,
                    now,
                    intent=wish.intent.value,
                    spare_reads=wish.spare_reads,
                )
            case Wish.APPROVE:
                self.check_plan(wish)
                return requests.approve(id_, caller, now)
            case Wish.REJECT:
                return requests.reject(id_, caller, now)
            case Wish.PAUSE:
                return requests.pause(id_, caller, now)
            case Wish.RESUME:
                return requests.resume(id_, caller, now)
            case Wish.CANCEL:
                return requests.cancel(id_, caller, now)
            case Wish.HAND_OVER:
                return self.controller.hand_over(id_, caller, now)
            case Wish.STAY_DRAINED:
                return requests.stay_drained(id_, caller, now)
            case Wish.GIVE_UP_CANCEL:
                return requests.give_up_cancel(id_, caller, now)
            case Wish.CHOOSE_OTHER_TARGETS:
                return requests.choose_other_targets(id_, caller, now)
            case Wish.INSIST:
                until = min(wish.at, now) + timedelta(minutes=wish.minutes)
                return requests.insist(
                    id_, Insistence(wish.guards, caller, wish.reason, until), wish.confirm, now
                )

    def check_plan(self, wish: Petition) -> None:
        """Raises PlanMoved when the plan is not the one that was shown."""
        drain = self.controller.requests.known(wish.drain)
        if changes := seals.changes(wish.seal, drain):
            raise PlanMoved(drain, changes)
