"""Work with another controller that leads: show what it does, and forward people's requests to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import datetime

import structlog

from predrain.actions.cluster.cluster_port import ClusterUnreachable, ConfigKeyStore, DamagedConfigKey, Lease
from predrain.actions.cluster.lease_owner import parse_owner
from predrain.actions.cluster.signed_keys import Unverified
from predrain.actions.controller.forwarded_requests import (
    REQUESTS,
    STANDS,
    ForwardedRequests,
    ForwardedResult,
)
from predrain.actions.controller.leadership import StepCounterWentBack
from predrain.actions.controller.person_request import PersonRequest
from predrain.actions.controller.replication import DrainReplication
from predrain.actions.controller.request_execution import NoSuchDrain, NotLeading, RequestNotReplicated
from predrain.data.drain import Drain, DrainStands, JournalEntry
from predrain.data.refusal import Refusal
from predrain.data.store.store_faults import StoreRefusal
from predrain.data.store.store_port import RevisionConflict, Store
from predrain.service.access.audit import AuditedCall, audit_line
from predrain.service.access.canonical_requests import describe_act
from predrain.service.drains.drain_requests import RefusedElsewhere, RequestUnanswered
from predrain.service.runtime.process_identity import name_process

POLL_SECONDS = 0.5
POLLS = 40
"""The number of polls for an answer. A leader polls every few seconds, and a command waits for 30 s at most."""

ExecuteOnce = Callable[[PersonRequest, datetime], Drain]
"""Carries out a request once.

If a leader did it and was killed before it answered, the result stays as it is. The returned drain is in the
cluster as well.
"""


@dataclass(slots=True)
class OtherControllers:
    """The other controllers of one cluster, as one of them sees them. Any thread may call."""

    store: Store
    keep: ConfigKeyStore
    lease: Lease
    sleep: Callable[[float], object] = time.sleep
    _forwarded: ForwardedRequests = field(init=False)
    _unverified: str = ""
    """The text that the last step could not verify, beside requests and answers."""

    def __post_init__(self) -> None:
        self._forwarded = ForwardedRequests(self.keep)

    @property
    def unverified_sentences(self) -> tuple[str, ...]:
        """A sentence for each text in the cluster that the last step found and could not verify."""
        found = tuple(self._forwarded.unverified.values())
        return (self._unverified, *found) if self._unverified else found

    def has_other_leader(self, now: datetime) -> bool:
        """Return whether another controller leads.

        If none does, this process takes the lease if it can, and copies the drains in the cluster into the store.
        Raises ClusterUnreachable.
        """
        if self.lease.is_held():
            return False
        if self.lease.hold():
            self._take_over(now)
            return False
        return self.lease.taken

    def exchange_requests(self, execute: ExecuteOnce, now: datetime) -> bool:
        """Carry out the requests of others if this process leads, else copy what the leader did. Return whether
        anything was new.

        Raises StoreRefusal; the requests then wait.
        """
        try:
            new = self._hear(execute, now) if self.lease.is_held() else self.mirror(now)
            self._unverified = ""
            return new
        except ClusterUnreachable as silent:
            self._unverified = (
                str(silent) if isinstance(silent, Unverified | StepCounterWentBack | DamagedConfigKey) else ""
            )
            structlog.get_logger().warning("requests of others wait", reason=str(silent))
            return False

    def mirror(self, now: datetime) -> bool:
        """Copy what the leader wrote; return whether anything was new. Raises ClusterUnreachable."""
        return not self.lease.is_held() and self._take_over(now)

    def forward_request(self, request: PersonRequest, execute: ExecuteOnce, now: datetime) -> Drain:
        """Forward a request to the leader and wait for its answer; if the lease becomes free meanwhile, carry it
        out here.

        Raises RefusedElsewhere with the leader's sentence, RequestUnanswered, ClusterUnreachable.
        """
        self._forwarded.submit_request(request)
        for _ in range(POLLS):
            heard = self._forwarded.answer_to(request.id)
            if heard is not None:
                self._forwarded.forget(request.id)
                return self._told(heard, now)
            if not self.has_other_leader(now) and self.lease.is_held():
                self._forwarded.withdraw(request.id, now)
                return execute(request, now)
            self.sleep(POLL_SECONDS)
        raise RequestUnanswered(
            POLLS * POLL_SECONDS, request.at + STANDS, leads=self.lease.find_holder() is not None
        )

    def _told(self, heard: ForwardedResult, now: datetime) -> Drain:
        if heard.refused:
            raise RefusedElsewhere(heard.refused, heard.drain)
        self._take_over(now)
        drain = self.store.drain(heard.drain)
        if drain is None:
            raise NoSuchDrain(heard.drain)
        return drain

    def _take_over(self, now: datetime) -> bool:
        return DrainReplication(self.store, self.keep).mirror(now)

    def _hear(self, execute: ExecuteOnce, now: datetime) -> bool:
        waiting = self._forwarded.list_waiting_requests(now)
        for request in waiting:
            try:
                heard = ForwardedResult(now, execute(request, now).id)
            except (RevisionConflict, NotLeading, RequestNotReplicated):
                continue  # the request stays, for the next poll or the next leader
            except StoreRefusal:
                raise  # the request stays too, since another store may accept it
            except DrainStands as standing:
                heard = ForwardedResult(now, standing.drain.id, str(standing))
            except Refusal as refused:
                heard = ForwardedResult(now, refused=str(refused))
            # Recorded before the answer: a request that is carried out is recorded, or it stays and is
            # repeated.
            self.store.add_journal([_build_audit_entry(request, heard, now)])
            self._forwarded.answer(request.id, heard)
        self._forwarded.remove_stale_answers(now)
        return bool(waiting)


def _build_audit_entry(request: PersonRequest, heard: ForwardedResult, now: datetime) -> JournalEntry:
    """Build the audit's line about a forwarded request: the caller, the process, and the key in the cluster."""
    said = {one.name: getattr(request, one.name) for one in fields(request)}
    asked = {
        name: value
        for name, value in said.items()
        if name not in ("kind", "caller", "at", "origin") and value
    }
    done = f"refused: {heard.refused}" if heard.refused else f"drain {heard.drain}"
    origin = name_process(parse_owner(request.origin)) if request.origin else "a controller"
    where = f"{origin} through the cluster's key predrain/{REQUESTS}{request.id}"
    return audit_line(
        AuditedCall(request.caller, where, describe_act(f"request {request.kind}", asked), done), now
    )
