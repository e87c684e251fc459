"""`halt`: no command is sent to the cluster until a person lifts the halt."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from predrain.data.outside_text import HALT_WHY
from predrain.service.app.application import Application
from predrain.service.drains.halt import HaltPlace, find_halt_line
from predrain.service.rest import http_caching, problem_answers
from predrain.service.rest.authentication import Actor, Reader
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.halt_lane import ANSWER_SECONDS, run_blocking, run_within
from predrain.service.rest.idempotency import Once
from predrain.service.rest.shared_bodies import ResponseBody, clean_field

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
    """`halted`: the reason why everything is halted; null when it is not. `by` and `since`: null for a halt that was
    set past this service. `unreached`: a sentence with the places that the last halt of this service, or its lifting,
    did not reach; null for none. `stored_in`: the places where the halt is kept; a halt that only the service's memory
    has ends with the process."""

    halted: str | None
    by: str | None
    since: datetime | None
    unreached: str | None
    stored_in: list[HaltPlace]


class HaltRequest(BaseModel):
    """A reason sets the halt, and null lifts it."""

    model_config = ConfigDict(extra="forbid")

    reason: Annotated[str, Field(max_length=HALT_WHY.limit), clean_field(HALT_WHY)] | None


@router.get("/halt", response_model=HaltBody, responses=http_caching.declare_polled_responses(401))
def get_halt_status(request: Request, application: TheApplication, _: Reader) -> Response:
    """Return the halt with its reason, or null if nothing is halted."""
    return http_caching.build_etag_response(
        request, _build_halt_body(application, application.find_halt_reason())
    )


@router.post(
    "/halt", response_model=HaltBody, responses=problem_answers.declare_problem_responses(401, 403, 409, 422)
)
async def set_or_lift_halt(
    request: Request, application: TheApplication, caller: Actor, once: Once, wanted: HaltRequest
) -> Response:
    """Halt everything, or lift the halt. The request has a thread of its own, however busy the service is, and a halt
    stands in memory before anything is written."""

    def carry_out() -> Response:
        return once.respond_once(lambda: _build_halt_body(application, application.halt(why, caller.name)))

    why = wanted.reason.strip() or "no reason given" if wanted.reason is not None else None
    if why is None:
        return await run_blocking(request.scope, carry_out)
    written = await run_within(request.scope, ANSWER_SECONDS, carry_out)
    if written is not None:
        return written
    told = HaltBody(
        halted=why, by=caller.name, since=application.clock.now(), unreached=BUSY,
        stored_in=[HaltPlace.MEMORY],
    )  # fmt: skip
    return http_caching.build_etag_response(request, told)


def _build_halt_body(application: Application, why: str | None) -> HaltBody:
    line = find_halt_line(application.store, why) if why is not None else None
    kept = list(application.halt_places)
    told = [application.control.unreached_sentence] if application.has_cluster else []
    if HaltPlace.MEMORY in kept:
        told.append(UNWRITTEN)
    unreached = " ".join(sentence for sentence in told if sentence) or None
    if line is None:
        return HaltBody(halted=why, by=None, since=None, unreached=unreached, stored_in=kept)
    return HaltBody(halted=why, by=line.caller, since=line.at, unreached=unreached, stored_in=kept)
