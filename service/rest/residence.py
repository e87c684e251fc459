"""`devices/ID/home`: which host a disk lives in, where several hosts name it."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from predrain.data.ids import DeviceId, HostName
from predrain.data.residence import UNKNOWN_HOST, Residence, ResidenceState, Settler, decide_residence
from predrain.service.application import House
from predrain.service.rest import caching
from predrain.service.rest.bodies import ResponseBody
from predrain.service.rest.devices import Id, known_device
from predrain.service.rest.guarding import Actor, Reader
from predrain.service.rest.once import Once
from predrain.service.rest.problems import HttpProblem, declared
from predrain.service.rest.within import TheHouse
from predrain.service.scoring.residents import note_answer

router = APIRouter(tags=["devices"])


class HomeRequest(BaseModel):
    """The host that has the disk."""

    model_config = ConfigDict(extra="forbid")

    host: str = Field(min_length=1, max_length=256)


class ResidenceBody(ResponseBody):
    """Which host a disk lives in. `rivals`: other hosts that name it; what they send is kept apart under `DEVICE on
    HOST`. `hosts`: hosts of which a person may say that they have the disk; none where only one host names it, or where
    others do in the cluster's device list alone. `by`: what settled it; None where it is not settled. `since`: since
    when it is not settled."""

    device: str
    state: ResidenceState
    home: str
    rivals: list[str]
    hosts: list[str]
    by: Settler | None
    since: datetime | None


@router.get("/devices/{id:path}/home", response_model=ResidenceBody, responses=caching.polled(401, 404))
def home(request: Request, house: TheHouse, _: Reader, id: Id) -> Response:  # noqa: A002
    """Which host a disk lives in, and which other hosts name it."""
    return caching.answer(request, _residence(house, DeviceId(id)))


@router.post(
    "/devices/{id:path}/home",
    status_code=202,
    response_model=ResidenceBody,
    responses=declared(401, 403, 404, 409, 422),
)
def name_home(
    house: TheHouse,
    _: Actor,
    once: Once,
    id: Id,  # noqa: A002
    named: HomeRequest,
) -> Response:
    """Say which host has a disk that several hosts name: its history belongs to that host from then on, and what the
    others send is of other disks. It is taken over within seconds."""
    device = DeviceId(id)
    known_device(house.sight(), device)
    hosts = _find_answers(house.fleet.residences().get(device))
    if named.host not in hosts:
        told = f"Hosts that name it: {', '.join(hosts)}." if hosts else "Only one host names it."
        raise HttpProblem(422, f"No reading of {device} came from {named.host[:64]}. {told}")

    def answer() -> ResidenceBody:
        note_answer(house.store, device, HostName(named.host))
        return _residence(house, device)

    return once.answer(answer, 202)


def _find_answers(residence: Residence | None) -> list[str]:
    """The hosts of which a person may say that they have the disk."""
    found = {residence.home, *residence.hosts_apart} if residence is not None else set[HostName]()
    return sorted(found) if len(found) > 1 else []


def _residence(house: House, device: DeviceId) -> ResidenceBody:
    sight = house.sight()
    known_device(sight, device)
    known, reading = sight.residences.get(device), sight.readings.get(device)
    listed = sight.view.hosts_of(device) if sight.view else frozenset[HostName]()
    if known is None and not listed:
        listed = frozenset({reading.host}) if reading else frozenset({UNKNOWN_HOST})
    limits = house.settings.forecast.residence_limits
    verdict = decide_residence(known, listed, house.clock.now(), limits)
    rivals = sorted(known.hosts_apart) if known else list(verdict.rivals)
    return ResidenceBody(
        device=device,
        state=verdict.state,
        home=verdict.home,
        rivals=list(rivals),
        hosts=_find_answers(known),
        by=verdict.by if verdict.state is ResidenceState.SETTLED else None,
        since=verdict.since,
    )
