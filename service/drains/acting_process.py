"""The process that acts on drains now, as one value for the command line, REST, the page and the status."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from predrain.actions.cluster.cluster_port import ClusterUnreachable, Lease, LeaseHolder
from predrain.actions.cluster.lease_owner import LeaseOwner, parse_owner
from predrain.service.drains.view_only_cluster import NeverHeldLease
from predrain.service.runtime.process_identity import name_process

START = "predrain up"
"""The command that starts a controller."""


class ActingPlace(StrEnum):
    """The place of the controller that acts on drains, as seen by the process that answers."""

    HERE = "here"
    ELSEWHERE = "elsewhere"
    NOWHERE = "nowhere"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ActingController:
    """The controller that acts on drains.

    owner, until: of the lease, if there is one. why: the reason why this process does not act although it would,
    or why nothing is known; empty otherwise.
    """

    place: ActingPlace
    owner: LeaseOwner | None = None
    until: datetime | None = None
    why: str = ""

    @classmethod
    def from_lease_holder(cls, holder: LeaseHolder | None, why: str = "") -> ActingController:
        """Make the value for the process that holds the lease; `NOWHERE` if no process holds it."""
        if holder is None:
            return cls(ActingPlace.NOWHERE, why=why)
        return cls(ActingPlace.ELSEWHERE, holder.owner, holder.until)


@dataclass(slots=True)
class ActingObserver:
    """Observes at each poll which process acts. owner: the name of this process."""

    lease: Lease | None
    owner: str
    _acts: bool = False
    _found: ActingController = ActingController(ActingPlace.NOWHERE)
    """The result of the last poll; `NOWHERE` if no other process acts."""

    def begin_acting(self) -> None:
        """Note that this process ticks the controller from now on. A command that only requests something never
        calls this.
        """
        self._acts = not isinstance(self.lease, NeverHeldLease)

    def poll_lease(self) -> bool:
        """Ask the cluster for the holder of the lease, unless this process holds it. Return whether the place
        changed.
        """
        was, self._found = self._found, self._look()
        return was.place is not self._found.place

    def find_acting_controller(self) -> ActingController:
        """Return the acting controller by the last poll, without asking the cluster."""
        if self._acts and self._found == ActingController(ActingPlace.NOWHERE):
            return ActingController(ActingPlace.HERE, parse_owner(self.owner) if self.owner else None)
        return self._found

    def _look(self) -> ActingController:
        if self.lease is None or self.lease.is_held():
            return ActingController(ActingPlace.NOWHERE)
        try:
            return ActingController.from_lease_holder(
                self.lease.find_holder(), self.lease.why if self._acts else ""
            )
        except ClusterUnreachable as silent:
            return ActingController(ActingPlace.UNKNOWN, why=str(silent))


def describe_acting_controller(acting: ActingController, start: str = START) -> str:
    """Describe in a sentence which controller acts on drains. start: the command that starts a controller."""
    match acting.place:
        case ActingPlace.HERE:
            return f"{_describe_controller_process('The controller', acting.owner)} acts on drains."
        case ActingPlace.ELSEWHERE:
            lease = f" and holds the lease until {acting.until:%H:%M:%S} UTC" if acting.until else ""
            return (
                f"{_describe_controller_process('Another controller', acting.owner)} acts on drains{lease}."
            )
        case ActingPlace.UNKNOWN:
            return f"Whether a controller runs is not known: {acting.why.rstrip('.')}."
        case ActingPlace.NOWHERE if acting.why:
            return f"Nothing happens to drains, since the controller cannot act: {acting.why}"
        case ActingPlace.NOWHERE:
            return f"Nothing happens to drains until a controller runs; start one: {start}"


def _describe_controller_process(name: str, owner: LeaseOwner | None) -> str:
    return name if owner is None else f"{name} on {name_process(owner)}"
