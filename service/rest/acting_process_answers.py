"""The requester of a drain, and the process that acts on drains, as REST bodies."""

from __future__ import annotations

from datetime import datetime

from predrain.service.access.requester import RequestSurface, parse_requester
from predrain.service.app.application import Application
from predrain.service.drains.acting_process import ActingController, ActingPlace, describe_acting_controller
from predrain.service.rest.shared_bodies import ResponseBody


class RequesterBody(ResponseBody):
    """The surface through which a request came, and the person who sent it; `person` is empty where nobody is named."""

    surface: RequestSurface
    person: str


class ActingBody(ResponseBody):
    """The controller that acts on drains. `place`: this process, another one, none, or not known. `owner`, `host`,
    `pid` and `until` are those of the lease, where there is one; `sentence` is for people."""

    place: ActingPlace
    owner: str | None
    host: str | None
    pid: int | None
    until: datetime | None
    reason: str
    sentence: str


def acting_body(application: Application) -> ActingBody:
    """Return the controller that acts, as of the last poll, or none without a configured cluster."""
    acting = (
        application.control.observer.find_acting_controller()
        if application.has_cluster
        else ActingController(ActingPlace.NOWHERE, why="no cluster is configured.")
    )
    owner = acting.owner
    return ActingBody(
        place=acting.place,
        owner=owner.name if owner else None,
        host=owner.host if owner else None,
        pid=owner.pid if owner else None,
        until=acting.until,
        reason=acting.why,
        sentence=describe_acting_controller(acting),
    )


def requester_body(name: str) -> RequesterBody:
    """Return the requester whose name is stored as `asked_by`."""
    found = parse_requester(name)
    return RequesterBody(surface=found.surface, person=found.person)
