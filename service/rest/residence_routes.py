"""`devices/ID/home`: the host that has a disk, if several hosts name it."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from predrain.data.ids import DeviceId, HostName
from predrain.data.residence import UNKNOWN_HOST, Residence, ResidenceState, SettledBy, decide_residence
from predrain.service.app.application import Application
from predrain.service.fleet.residents import note_answer
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Actor, Reader
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.device_routes import Id, known_device
from predrain.service.rest.idempotency import Once
from predrain.service.rest.problem_answers import HttpProblem, declare_problem_responses
from predrain.service.rest.shared_bodies import ResponseBody

router = APIRouter(tags=["devices"])


class DeviceHostRequest(BaseModel):
    """The host that has the disk."""

    model_config = ConfigDict(extra="forbid")

    host: str = Field(min_length=1, max_length=256)


class ResidenceBody(ResponseBody):
    """The host of a disk. `other_hosts`: other hosts that name the disk; their readings are separate, under `DEVICE on
    HOST`. `hosts`: hosts that a person may name as the disk's; none if only one host names the disk, or if others do
    in the cluster's device list alone. `by`: the observation or person that settled the host; null while it is not
    settled. `since`: the time since which it is not settled."""

    device: str
    state: ResidenceState
    host: str
    other_hosts: list[str]
    hosts: list[str]
    by: SettledBy | None
    since: datetime | None


@router.get(
    "/devices/{id:path}/host",
    response_model=ResidenceBody,
    responses=http_caching.declare_polled_responses(401, 404),
)
def get_device_home(request: Request, application: TheApplication, _: Reader, id: Id) -> Response:  # noqa: A002
    """Return the host in which a disk lives, and the other hosts that name the disk."""
    return http_caching.build_etag_response(request, _build_residence_body(application, DeviceId(id)))


@router.post(
    "/devices/{id:path}/host",
    status_code=202,
    response_model=ResidenceBody,
    responses=declare_problem_responses(401, 403, 404, 409, 422),
)
def name_home(
    application: TheApplication,
    _: Actor,
    once: Once,
    id: Id,  # noqa: A002
    named: DeviceHostRequest,
) -> Response:
    """State which host has a disk that several hosts name. The disk's history belongs to that host from then on, and
    readings of the others are of other disks. The change takes effect within seconds."""
    device = DeviceId(id)
    known_device(application.get_snapshot(), device)
    hosts = _find_answers(application.fleet.residences().get(device))
    if named.host not in hosts:
        told = f"Hosts that name it: {', '.join(hosts)}." if hosts else "Only one host names it."
        raise HttpProblem(422, f"No reading of {device} came from {named.host[:64]}. {told}")

    def answer() -> ResidenceBody:
        note_answer(application.store, device, HostName(named.host))
        return _build_residence_body(application, device)

    return once.respond_once(answer, 202)


def _find_answers(residence: Residence | None) -> list[str]:
    """Return the hosts that a person may choose as the disk's home."""
    found = {residence.home, *residence.hosts_apart} if residence is not None else set[HostName]()
    return sorted(found) if len(found) > 1 else []


def _build_residence_body(application: Application, device: DeviceId) -> ResidenceBody:
    snapshot = application.get_snapshot()
    known_device(snapshot, device)
    known, reading = snapshot.residences.get(device), snapshot.readings.get(device)
    listed = snapshot.view.hosts_of(device) if snapshot.view else frozenset[HostName]()
    if known is None and not listed:
        listed = frozenset({reading.host}) if reading else frozenset({UNKNOWN_HOST})
    limits = application.settings.forecast.residence_limits
    verdict = decide_residence(known, listed, application.clock.now(), limits)
    rivals = sorted(known.hosts_apart) if known else list(verdict.rivals)
    return ResidenceBody(
        device=device,
        state=verdict.state,
        host=verdict.home,
        other_hosts=list(rivals),
        hosts=_find_answers(known),
        by=verdict.by if verdict.state is ResidenceState.SETTLED else None,
        since=verdict.since,
    )
