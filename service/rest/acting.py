"""Who asked for a drain, and which process acts on drains, as REST answers it."""

from __future__ import annotations

from datetime import datetime

from predrain.service.application import House
from predrain.service.drains.acting import ActingController, ActingPlace, describe_acting_controller
from predrain.service.requester import Surface, parse_requester
from predrain.service.rest.bodies import ResponseBody


class RequesterBody(ResponseBody):
    """By what and by whom something was asked; `person` is empty where nobody is named."""

    surface: Surface
    person: str


class ActingBody(ResponseBody):
    """The controller that acts on drains. `place`: this process, another one, none, or not known. `owner`, `host`,
    `pid` and `until` are those of the lease, where there is one; `sentence` says it for people."""

    place: ActingPlace
    owner: str | None
    host: str | None
    pid: int | None
    until: datetime | None
    why: str
    sentence: str


def acting_body(house: House) -> ActingBody:
    """Who acts, by the last look; nobody where no cluster is configured."""
    acting = (
        house.control.observer.find_acting_controller()
        if house.has_cluster
        else ActingController(ActingPlace.NOWHERE, why="no cluster is configured.")
    )
    owner = acting.owner
    return ActingBody(
        place=acting.place,
        owner=owner.name if owner else None,
        host=owner.host if owner else None,
        pid=owner.pid if owner else None,
        until=acting.until,
        why=acting.why,
        sentence=describe_acting_controller(acting),
    )


def requester_body(name: str) -> RequesterBody:
    """The requester whose name is kept as `asked_by`."""
    found = parse_requester(name)
    return RequesterBody(surface=found.surface, person=found.person)
