"""Which process acts on drains now, as one value that the command line, REST, the page and the status share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from predrain.actions.cluster.lease_owner import LeaseOwner, parse_owner
from predrain.actions.cluster.port import ClusterUnreachable, Lease, LeaseHolder
from predrain.service.drains.onlooking import NeverMine

START = "predrain up"
"""The command that starts a controller."""


class ActingPlace(StrEnum):
    """Where the controller is that acts on drains, as the process sees it that answers."""

    HERE = "here"
    ELSEWHERE = "elsewhere"
    NOWHERE = "nowhere"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ActingController:
    """The controller that acts on drains.

    owner, until: of the lease, where there is one. why: why this process does not act though it would, or why nothing
    is known; empty otherwise.
    """

    place: ActingPlace
    owner: LeaseOwner | None = None
    until: datetime | None = None
    why: str = ""

    @classmethod
    def elsewhere(cls, holder: LeaseHolder | None, why: str = "") -> ActingController:
        """The process that holds the lease; nowhere when nobody does."""
        if holder is None:
            return cls(ActingPlace.NOWHERE, why=why)
        return cls(ActingPlace.ELSEWHERE, holder.owner, holder.until)


@dataclass(slots=True)
class ActingObserver:
    """Sees which process acts, once a look. owner: the name of this process."""

    lease: Lease | None
    owner: str
    _acts: bool = False
    _found: ActingController = ActingController(ActingPlace.NOWHERE)
    """What the last look found beside this process."""

    def begin_acting(self) -> None:
        """This process ticks the controller from now on; a command that only asks for something does not."""
        self._acts = not isinstance(self.lease, NeverMine)

    def poll_lease(self) -> bool:
        """Ask the cluster who holds the lease, where this process does not; whether anything changed."""
        was, self._found = self._found, self._look()
        return was.place is not self._found.place

    def find_acting_controller(self) -> ActingController:
        """Who acts, by the last look. Asks nobody."""
        if self._acts and self._found == ActingController(ActingPlace.NOWHERE):
            return ActingController(ActingPlace.HERE, parse_owner(self.owner) if self.owner else None)
        return self._found

    def _look(self) -> ActingController:
        if self.lease is None or self.lease.held():
            return ActingController(ActingPlace.NOWHERE)
        try:
            return ActingController.elsewhere(self.lease.find_holder(), self.lease.why if self._acts else "")
        except ClusterUnreachable as silent:
            return ActingController(ActingPlace.UNKNOWN, why=str(silent))


def describe_acting_controller(acting: ActingController, start: str = START) -> str:
    """Who acts on drains, as a sentence. start: the command that starts a controller."""
    match acting.place:
        case ActingPlace.HERE:
            return f"{_process('The controller', acting.owner)} acts on drains."
        case ActingPlace.ELSEWHERE:
            lease = f" and holds the lease until {acting.until:%H:%M:%S} UTC" if acting.until else ""
            return f"{_process('Another controller', acting.owner)} acts on drains{lease}."
        case ActingPlace.UNKNOWN:
            return f"Whether a controller runs is not known: {acting.why.rstrip('.')}."
        case ActingPlace.NOWHERE if acting.why:
            return f"Nothing happens to drains, since the controller cannot act: {acting.why}"
        case ActingPlace.NOWHERE:
            return f"Nothing happens to drains until a controller runs; start one: {start}"


def name_process(owner: LeaseOwner) -> str:
    """A process as people know it."""
    return owner.host if owner.pid is None else f"{owner.host} (process {owner.pid})"


def _process(name: str, owner: LeaseOwner | None) -> str:
    return name if owner is None else f"{name} on {name_process(owner)}"
