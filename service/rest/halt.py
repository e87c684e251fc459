"""`halt`: no command is sent to the cluster until a person lifts the halt."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from predrain.data.outside_text import HALT_WHY
from predrain.service.application import House
from predrain.service.halt import HALTS, HaltPlace, describe_halt
from predrain.service.rest import caching, problems
from predrain.service.rest.bodies import ResponseBody, clean_field
from predrain.service.rest.guarding import Actor, Reader
from predrain.service.rest.halt_lane import ANSWER_SECONDS, run_blocking, run_within
from predrain.service.rest.once import Once
from predrain.service.rest.within import TheHouse

router = APIRouter(tags=["halt"])
BUSY = (
    "Something else holds the store, so the halt is kept in the memory of this process and ends with it: the service "
    "goes on trying to write the halt down by itself."
)
UNWRITTEN = (
    "The store takes nothing now, so the halt is kept in the memory of this process and ends with it: make room on the "
    "store's disk, and the service writes the halt down by itself."
)


class HaltBody(ResponseBody):
    """Why everything is halted; null when it is not. `by` and `since`: null where it was halted past this service.
    `unreached`: what the last halt of this service, or its lifting, did not reach, as a sentence; null for nothing.
    `kept`: where the halt is kept; what only the service's memory has, ends with its process."""

    halted: str | None
    by: str | None
    since: datetime | None
    unreached: str | None
    kept: list[HaltPlace]


class HaltRequest(BaseModel):
    """A reason halts, null lifts."""

    model_config = ConfigDict(extra="forbid")

    why: Annotated[str, Field(max_length=HALT_WHY.limit), clean_field(HALT_WHY)] | None


@router.get("/halt", response_model=HaltBody, responses=caching.polled(401))
def halted(request: Request, house: TheHouse, _: Reader) -> Response:
    """Whether and why everything is halted."""
    return caching.answer(request, _body(house, house.halted()))


@router.post("/halt", response_model=HaltBody, responses=problems.declared(401, 403, 409, 422))
async def halt(request: Request, house: TheHouse, caller: Actor, once: Once, wanted: HaltRequest) -> Response:
    """Halt everything, or lift the halt. It has a thread of its own, whatever else the service is busy with, and a halt
    stands in memory before anything is written."""

    def carry_out() -> Response:
        return once.answer(lambda: _body(house, house.halt(why, caller.name)))

    why = wanted.why.strip() or "no reason given" if wanted.why is not None else None
    if why is None:
        return await run_blocking(request.scope, carry_out)
    written = await run_within(request.scope, ANSWER_SECONDS, carry_out)
    if written is not None:
        return written
    told = HaltBody(
        halted=why, by=caller.name, since=house.clock.now(), unreached=BUSY,
        kept=[HaltPlace.MEMORY],
    )  # fmt: skip
    return caching.answer(request, told)


def _body(house: House, why: str | None) -> HaltBody:
    last = next(iter(house.store.journal(HALTS, 1)), None)
    kept = list(house.halt_places)
    told = [house.control.unreached] if house.has_cluster else []
    if HaltPlace.MEMORY in kept:
        told.append(UNWRITTEN)
    unreached = " ".join(sentence for sentence in told if sentence) or None
    if why is None or last is None or last.decided != describe_halt(why):
        return HaltBody(halted=why, by=None, since=None, unreached=unreached, kept=kept)
    return HaltBody(halted=why, by=last.caller, since=last.at, unreached=unreached, kept=kept)
