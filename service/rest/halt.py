"""`halt`: one word stops every command to the cluster and stays until a person lifts it."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from service.house import HALTS, House, halting
from service.rest import caching, problems
from service.rest.bodies import Body
from service.rest.guarding import Actor, Reader
from service.rest.once import Once
from service.rest.within import TheHouse

router = APIRouter(tags=["halt"])


class HaltBody(Body):
    """Why everything is halted; null when it is not. `by` and `since`: null where it was halted past this service.
    `unreached`: what the last halt of this service, or its lifting, did not reach, as a sentence; null for nothing."""

    halted: str | None
    by: str | None
    since: datetime | None
    unreached: str | None


class HaltRequest(BaseModel):
    """A reason halts, null lifts."""

    model_config = ConfigDict(extra="forbid")

    why: str | None = Field(max_length=500)


@router.get("/halt", response_model=HaltBody, responses=caching.polled(401))
def halted(request: Request, house: TheHouse, _: Reader) -> Response:
    """Whether and why everything is halted."""
    return caching.answer(request, _body(house, house.halted()))


@router.post("/halt", response_model=HaltBody, responses=problems.declared(401, 403, 409, 422))
def halt(house: TheHouse, caller: Actor, once: Once, wanted: HaltRequest) -> Response:
    """Halt everything, or lift the halt."""
    why = wanted.why.strip() or "no reason given" if wanted.why is not None else None
    return once.answer(lambda: _body(house, house.halt(why, caller.name)))


def _body(house: House, why: str | None) -> HaltBody:
    last = next(iter(house.store.journal(HALTS, 1)), None)
    unreached = (house.control.unreached or None) if house.has_cluster else None
    if why is None or last is None or last.decided != halting(why):
        return HaltBody(halted=why, by=None, since=None, unreached=unreached)
    return HaltBody(halted=why, by=last.caller, since=last.at, unreached=unreached)
