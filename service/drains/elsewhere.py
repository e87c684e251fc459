"""Where another controller leads: what it does is shown here, and what a person asks here is handed to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import datetime

import structlog

from predrain.actions.cluster.lease_owner import parse_owner
from predrain.actions.cluster.port import ClusterUnreachable, Damaged, Keep, Lease
from predrain.actions.cluster.signed_keys import Unverified
from predrain.actions.controller.forwarded_requests import (
    REQUESTS,
    STANDS,
    ForwardedResult,
    Petition,
    Petitions,
)
from predrain.actions.controller.leadership import SteppedBack
from predrain.actions.controller.replication import Copies
from predrain.actions.controller.requests import NoSuchDrain, NotLeading, NotTaken
from predrain.data.drain import Drain, DrainStands, JournalEntry
from predrain.data.refusal import Refusal
from predrain.data.store.faults import StoreRefusal
from predrain.data.store.port import RevisionConflict, Store
from predrain.service.access.acts import describe_act
from predrain.service.access.audit import Call, audit_line
from predrain.service.drains.acting import name_process
from predrain.service.drains.drain_requests import RefusedElsewhere, Unheard

POLL_SECONDS = 0.5
POLLS = 40
"""How often an answer is looked for. A leader looks every few seconds, and a command waits for thirty at most."""

CarryOut = Callable[[Petition, datetime], Drain]
"""Carries a wish out, once: what is as wished already, by a leader that was killed before it answered, stays so. The
drain that it gives is in the cluster as well.
"""


@dataclass(slots=True)
class Elsewhere:
    """The controllers of one cluster, as one of them meets the others. Any thread may call."""

    store: Store
    keep: Keep
    lease: Lease
    sleep: Callable[[float], object] = time.sleep
    _petitions: Petitions = field(init=False)
    _unverified: str = ""
    """What the last step could not believe, beside requests and answers."""

    def __post_init__(self) -> None:
        self._petitions = Petitions(self.keep)

    @property
    def unverified(self) -> tuple[str, ...]:
        """A sentence for each text in the cluster that the last step found and did not believe."""
        found = tuple(self._petitions.unverified.values())
        return (self._unverified, *found) if self._unverified else found

    def leads(self, now: datetime) -> bool:
        """Whether another controller leads. With no other the lease is ours from here on, where it is to be had, and
        the store knows what the cluster keeps. Raises ClusterUnreachable.
        """
        if self.lease.held():
            return False
        if self.lease.hold():
            self._take_over(now)
            return False
        return self.lease.taken

    def step(self, carry_out: CarryOut, now: datetime) -> bool:
        """Carry out what others asked, when we lead; else see what the leader did. Whether anything was new.

        Raises StoreRefusal; what was asked then waits.
        """
        try:
            new = self._hear(carry_out, now) if self.lease.held() else self.mirror(now)
            self._unverified = ""
            return new
        except ClusterUnreachable as silent:
            self._unverified = str(silent) if isinstance(silent, Unverified | SteppedBack | Damaged) else ""
            structlog.get_logger().warning("requests of others wait", why=str(silent))
            return False

    def mirror(self, now: datetime) -> bool:
        """Take over what the leader wrote; whether anything was new. Raises ClusterUnreachable."""
        return not self.lease.held() and self._take_over(now)

    def ask(self, wish: Petition, carry_out: CarryOut, now: datetime) -> Drain:
        """Hand a wish to the leader and wait for its answer; where the lease comes free meanwhile, carry it out here.

        Raises RefusedElsewhere with the leader's sentence, Unheard, ClusterUnreachable.
        """
        self._petitions.lay(wish)
        for _ in range(POLLS):
            heard = self._petitions.answer_to(wish.id)
            if heard is not None:
                self._petitions.forget(wish.id)
                return self._told(heard, now)
            if not self.leads(now) and self.lease.held():
                self._petitions.withdraw(wish.id, now)
                return carry_out(wish, now)
            self.sleep(POLL_SECONDS)
        raise Unheard(POLLS * POLL_SECONDS, wish.at + STANDS, leads=self.lease.find_holder() is not None)

    def _told(self, heard: ForwardedResult, now: datetime) -> Drain:
        if heard.refused:
            raise RefusedElsewhere(heard.refused, heard.drain)
        self._take_over(now)
        drain = self.store.drain(heard.drain)
        if drain is None:
            raise NoSuchDrain(heard.drain)
        return drain

    def _take_over(self, now: datetime) -> bool:
        return Copies(self.store, self.keep).mirror(now)

    def _hear(self, carry_out: CarryOut, now: datetime) -> bool:
        waiting = self._petitions.waiting(now)
        for petition in waiting:
            try:
                heard = ForwardedResult(now, carry_out(petition, now).id)
            except (RevisionConflict, NotLeading, NotTaken):
                continue  # it stays, for the next look or the next leader
            except StoreRefusal:
                raise  # so does this one: another store may take it
            except DrainStands as standing:
                heard = ForwardedResult(now, standing.drain.id, str(standing))
            except Refusal as refused:
                heard = ForwardedResult(now, refused=str(refused))
            # Before it is answered: a request that is carried out is on record, or it stays and is repeated.
            self.store.add_journal([_line(petition, heard, now)])
            self._petitions.answer(petition.id, heard)
        self._petitions.tidy(now)
        return bool(waiting)


def _line(petition: Petition, heard: ForwardedResult, now: datetime) -> JournalEntry:
    """The audit's line about a request that was laid in the cluster: who asked, through which process and key."""
    said = {one.name: getattr(petition, one.name) for one in fields(petition)}
    asked = {
        name: value
        for name, value in said.items()
        if name not in ("wish", "caller", "at", "origin") and value
    }
    done = f"refused: {heard.refused}" if heard.refused else f"drain {heard.drain}"
    origin = name_process(parse_owner(petition.origin)) if petition.origin else "a controller"
    where = f"{origin} through the cluster's key predrain/{REQUESTS}{petition.id}"
    return audit_line(
        Call(petition.caller, where, describe_act(f"request {petition.wish}", asked), done), now
    )
