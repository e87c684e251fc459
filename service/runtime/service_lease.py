"""The lease of the services that share a store: exactly one of them does what must be done once.

A process that was stopped (SIGSTOP, a frozen VM) trusts its last renewal by a clock that goes on meanwhile. Its notes
of what was sent are bound to its term besides: the store compares the term in the transaction of the write, so that a
process that another one has replaced notes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import msgspec
import structlog

from predrain.actions.cluster.lease_owner import parse_owner
from predrain.data.clock import Clock
from predrain.data.refusal import Refusal
from predrain.data.store.store_port import NoteCondition, Store
from predrain.service.runtime.lease_decision import (
    OWN_SECONDS,
    ActiveService,
    LeaseBeat,
    LeaseRank,
    LeaseRows,
    LeaseStep,
    ObservedLease,
    decide_lease_step,
    observe_lease,
)
from predrain.service.runtime.process_identity import name_process

ROOM = "service lease"
_ACTIVE, _BEAT = "active", "beat"
"""Names of the two notes, in the order in which every transaction locks them."""
_ACTIVES, _BEATS = msgspec.json.Decoder(ActiveService), msgspec.json.Decoder(LeaseBeat)
_NEVER = ActiveService("", 0, datetime.fromtimestamp(0, UTC))
_FREE = msgspec.json.encode(_NEVER)


class NotActive(Refusal):
    """This service is the standby. `active`: the service that does what was requested; None if none is known."""

    def __init__(self, active: ActiveService | None) -> None:
        super().__init__(f"this service is the standby; {_name_active_service(active)}")
        self.active = active


class ServiceRole(StrEnum):
    """The role of a service beside the others that share its store."""

    ALONE = "alone"
    """No other service can share the store, which is a file."""
    ACTIVE = "active"
    STANDBY = "standby"


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The role of a service, and the active service as of the last read of the lease; None if none is known."""

    role: ServiceRole
    active: ActiveService | None = None

    def __str__(self) -> str:
        """Return a sentence for people."""
        match self.role:
            case ServiceRole.ALONE:
                return "No other service shares the store."
            case ServiceRole.ACTIVE:
                return "This service is the active one."
            case ServiceRole.STANDBY:
                return f"This service is the standby; {_name_active_service(self.active)}."


@dataclass(slots=True)
class ServiceLease:
    """The lease as the process `name` has it. Any thread may call; one thread calls `step`.

    monotonic: seconds of a clock that cannot be set and that counts suspension. url: the address at which this process
    answers, once it is known.
    """

    store: Store
    name: str
    clock: Clock
    monotonic: Callable[[], float]
    url: str = ""
    _observed: ObservedLease | None = None
    _mine: ActiveService | None = None
    """The row of the term that this process has, or had last."""
    _condition: NoteCondition | None = None
    """The condition that this row still stands in the store."""
    _until: float | None = None

    def step(self, rank: LeaseRank) -> bool:
        """Read the lease, and renew or take it; return whether the state changed. Raises what the store raises."""
        before, asked_at = self.find_state(), self.monotonic()
        documents = self.store.read_notes(ROOM)
        rows = _decode_rows(documents)
        self._observed = observe_lease(self._observed, rows, asked_at)
        match decide_lease_step(self._observed, self.name, rank):
            case LeaseStep.RENEW:
                self._renew(rows, documents, rank, asked_at)
            case LeaseStep.TAKE:
                self._take(rows, documents, rank, asked_at)
            case LeaseStep.WAIT:
                self._until = None
        return before != self.find_state()

    def is_active(self) -> bool:
        """Return whether this process has the lease, by its own deadline. Sends no query."""
        until = self._until
        return until is not None and self.monotonic() < until

    def confirm(self) -> None:
        """Ask the store whether this process still has the lease. Raises NotActive, and what the store raises."""
        active = _decode_rows(self.store.read_notes(ROOM)).active
        if active is None or active != self._mine:
            self._until = None
        if not self.is_active():
            raise NotActive(active)

    def require_active(self) -> None:
        """Raise NotActive unless this process has the lease, by its own deadline."""
        if not self.is_active():
            raise NotActive(self.find_state().active)

    def read_notes(self, room: str) -> Mapping[str, bytes]:
        """Return the notes in `room`, by name."""
        return self.store.read_notes(room)

    def write_notes(self, room: str, changes: Mapping[str, bytes | None]) -> None:
        """Write notes in one transaction with a comparison of the term. Raises NotActive, and then writes nothing."""
        if self._condition is None or not self.store.write_notes_if(self._condition, room, changes):
            raise NotActive(self.find_state().active)

    def find_state(self) -> ServiceState:
        """Return the role of this process, as of the last read of the lease."""
        if self.is_active():
            return ServiceState(ServiceRole.ACTIVE, self._mine)
        active = self._observed.rows.active if self._observed is not None else None
        known = active is not None and active.name not in ("", self.name)
        return ServiceState(ServiceRole.STANDBY, active if known else None)

    @property
    def own_term(self) -> int:
        """The term in which this process was the active one last; 0 if it never was."""
        return 0 if self._mine is None else self._mine.term

    def release(self) -> None:
        """Give the lease back, so that another service takes it at once. Raises what the store raises."""
        self._until = None
        if self._mine is not None and self._condition is not None:
            free = msgspec.structs.replace(self._mine, name="")
            self.store.write_notes_if(self._condition, ROOM, {_ACTIVE: msgspec.json.encode(free)})

    def _renew(
        self, rows: LeaseRows, documents: Mapping[str, bytes], rank: LeaseRank, asked_at: float
    ) -> None:
        self._mine = rows.active
        self._condition = NoteCondition(ROOM, {_ACTIVE: documents[_ACTIVE]})
        beat = LeaseBeat(self.own_term, 1 if rows.beat is None else rows.beat.count + 1, rank)
        renewed = self.store.write_notes_if(self._condition, ROOM, {_BEAT: msgspec.json.encode(beat)})
        self._until = asked_at + OWN_SECONDS if renewed else None

    def _take(
        self, rows: LeaseRows, documents: Mapping[str, bytes], rank: LeaseRank, asked_at: float
    ) -> None:
        """Take the lease if the rows are still those that were read, as bytes: a later release may add fields."""
        before = rows.active or _NEVER
        if rows.active is None:
            self.store.note_once(ROOM, _ACTIVE, _FREE)  # a row that can be locked
            documents = {_ACTIVE: _FREE}
        mine = ActiveService(self.name, before.term + 1, self.clock.now(), self.url)
        beat = LeaseBeat(mine.term, 0, rank)
        document = msgspec.json.encode(mine)
        changes = {_ACTIVE: document, _BEAT: msgspec.json.encode(beat)}
        if not self.store.write_notes_if(NoteCondition(ROOM, documents), ROOM, changes):
            return  # another process was faster, and the next read finds it
        self._mine, self._condition = mine, NoteCondition(ROOM, {_ACTIVE: document})
        self._observed = ObservedLease(LeaseRows(mine, beat), asked_at, asked_at)
        self._until = asked_at + OWN_SECONDS
        structlog.get_logger().info(
            "this service is the active one", term=mine.term, before=before.name or "none"
        )


def _decode_rows(documents: Mapping[str, bytes]) -> LeaseRows:
    active, beat = documents.get(_ACTIVE), documents.get(_BEAT)
    return LeaseRows(
        None if active is None else _ACTIVES.decode(active), None if beat is None else _BEATS.decode(beat)
    )


def _name_active_service(active: ActiveService | None) -> str:
    if active is None or not active.name:
        return "no service is known to be active"
    address = f", at {active.url}" if active.url else ""
    return f"the active one is {name_process(parse_owner(active.name))}{address}"
