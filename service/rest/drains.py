"""`drains`: proposed, under way, over; with plan, guards, curve, journal; what a person may ask."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from predrain.actions.core.messages import describe_state
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import OsdId
from predrain.data.outside_text import PATTERN, REASON
from predrain.service.application import House
from predrain.service.drains import plan_etags as seals
from predrain.service.drains.drain_requests import PlanMoved
from predrain.service.drains.lasting import back, left
from predrain.service.drains.timeline import holds
from predrain.service.rest import caching
from predrain.service.rest.acting import ActingBody, RequesterBody, acting_body, requester_body
from predrain.service.rest.bodies import ResponseBody, clean_field
from predrain.service.rest.drain_holds import (
    GuardBody,
    InsistenceBody,
    WayOutBody,
    guard_bodies,
    insistence_body,
    way_out_bodies,
)
from predrain.service.rest.failed_reads import describe_read_errors
from predrain.service.rest.guarding import Actor, Reader
from predrain.service.rest.once import Once
from predrain.service.rest.outlooks import Cursor, Limit
from predrain.service.rest.plans import PlanBody, WholePlanBody, plan_body, whole_plan_body
from predrain.service.rest.problems import HttpProblem, declared
from predrain.service.rest.within import TheHouse

if TYPE_CHECKING:
    from predrain.service.drains.control import Control

router = APIRouter(tags=["drains"])


class ProgressBody(ResponseBody):
    """How far the data is."""

    planned_pgs: int
    moved_pgs: int
    planned_bytes: int
    moved_bytes: int
    in_flight: int
    budget: int
    lost_pgs: int
    """Whose copy on the old disk is gone without having been moved."""


class DrainBody(ResponseBody):
    """One drain. `etag` is what an approval sends as If-Match."""

    id: str
    device: str | None
    osds: list[OsdId]
    state: DrainState
    state_text: str
    """The state as it is told of a drain, a fill or a quarantine."""
    intent: Intent
    asked_by: str
    requester: RequesterBody
    reason: str
    created_at: datetime
    updated_at: datetime
    held_by: list[str]
    ways_out: list[WayOutBody]
    """Open to it now, of a drain that cannot go on by itself; by the last look."""
    insistence: InsistenceBody | None
    ended_why: str
    etag: str
    progress: ProgressBody
    plan: PlanBody | None
    left_hours: float | None
    """At the pace so far, and by the plan before enough has moved, while it is under way and nothing holds it; null
    where nobody can tell."""
    took_hours: float | None
    """From its first step to its end, of one that is over; null for one that never began."""


class DrainPage(ResponseBody):
    """All drains, newest first."""

    items: list[DrainBody]
    next: str | None
    acting: ActingBody


class RequestedDrainBody(DrainBody):
    """A drain as a request left it, and the controller that acts on it: without one nothing happens to it."""

    acting: ActingBody


class HoldBody(ResponseBody):
    """From when to when (null: still) it held, and why."""

    from_: datetime = Field(serialization_alias="from")
    to: datetime | None
    why: str


class TimelineBody(ResponseBody):
    """Curves on one axis of milliseconds since 1970."""

    t: list[int]
    bytes_left: list[int]
    in_flight: list[int]
    latency_ratio: list[float | None]
    holds: list[HoldBody]


class WholeDrainBody(RequestedDrainBody):
    """A drain with every guard and its curve."""

    back_hours: float | None
    """That a cancel would take now; null where no data has moved, or nobody can tell."""
    read_errors: list[str]
    """What Ceph's health and the kernel of its host say of failed reads of the disk, sentences."""
    guards: list[GuardBody]
    timeline: TimelineBody


class JournalLineBody(ResponseBody):
    """What was seen, decided and answered."""

    at: datetime
    seen: str
    decided: str
    answered: str
    epoch: int | None
    caller: str


class JournalBody(ResponseBody):
    """Lines of a drain's journal, oldest first; `next` leads to those before them."""

    items: list[JournalLineBody]
    next: str | None


class TaskBody(ResponseBody):
    """One thing to do, and the command that does it, where there is one."""

    what: str
    command: str


class HandedOverBody(DrainBody):
    """A drain that was handed over, and what a person or the orchestrator does next."""

    orchestrator: str
    tasks: list[TaskBody]


class DrainRequest(BaseModel):
    """A drain by a person's word."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[str, clean_field(PATTERN, must_remain=True)] = Field(
        min_length=1, max_length=PATTERN.limit, description="`osd.N` or a device id."
    )
    intent: Intent = Intent.REPLACE
    reason: Annotated[str, Field(max_length=REASON.limit), clean_field(REASON)] = ""
    spare_reads: bool = Field(
        default=False,
        description="Reading the disk hurts clients: it stops leading PGs before its data leaves.",
    )


@router.get("/drains", response_model=DrainPage, responses=caching.polled(401, 422))
def drains(
    request: Request, house: TheHouse, _: Reader, limit: Limit = 1000, cursor: Cursor = None
) -> Response:
    """All drains, newest first."""
    shown, following = caching.older(house.sight().drains, limit, cursor, lambda drain: drain.id)
    items = [DrainBody(**_row(house, one)) for one in shown]
    return caching.answer(request, DrainPage(items=items, next=following, acting=acting_body(house)))


@router.get("/plan", responses=declared(401, 409, 422, 503))
def draft(
    house: TheHouse,
    _: Reader,
    target: Annotated[str, Query(min_length=1, max_length=256)],
    intent: Intent = Intent.REPLACE,
) -> WholePlanBody:
    """What draining `target` would do. Nothing is kept and nothing moves."""
    drain = house.control.draft(target, intent, house.clock.now())
    assert drain.plan is not None
    return whole_plan_body(drain.plan, house.fleet.view)


@router.post(
    "/drains",
    status_code=201,
    response_model=RequestedDrainBody,
    responses=declared(401, 403, 409, 422, 503),
)
def propose(house: TheHouse, caller: Actor, once: Once, wanted: DrainRequest) -> Response:
    """Ask for a drain; it begins when it is approved."""
    reason = wanted.reason.strip() or f"asked for by {caller.name}"
    return once.answer(
        lambda: _requested(
            house,
            house.propose(wanted.target, caller.name, reason, wanted.intent, spare_reads=wanted.spare_reads),
        ),
        201,
    )


@router.get("/drains/{id}", response_model=WholeDrainBody, responses=caching.polled(401, 404))
def drain(request: Request, house: TheHouse, _: Reader, id: str) -> Response:  # noqa: A002
    """One drain with every guard and its curve."""
    return caching.answer(request, _whole(house, _find_drain(house, id)))


@router.get("/drains/{id}/plan", response_model=WholePlanBody, responses=caching.polled(401, 404))
def plan(request: Request, house: TheHouse, _: Reader, id: str) -> Response:  # noqa: A002
    """The plan with every move, in order."""
    found = _find_drain(house, id).plan
    if found is None:
        raise HttpProblem(404, f"Drain {id} has no plan yet; it is made when the cluster was looked at.")
    return caching.answer(request, whole_plan_body(found, house.fleet.view))


@router.get("/drains/{id}/journal", response_model=JournalBody, responses=caching.polled(401, 404))
def journal(
    request: Request,
    house: TheHouse,
    _: Reader,
    id: str,  # noqa: A002
    limit: Limit = 10_000,
    cursor: Cursor = None,
) -> Response:
    """What was seen, decided and answered, oldest first; the newest `limit` lines, or those before the cursor."""
    _find_drain(house, id)
    lines, following = caching.lines(partial(house.store.journal, id), limit, cursor)
    items = [
        JournalLineBody(
            at=line.at,
            seen=line.seen,
            decided=line.decided,
            answered=line.answered,
            epoch=line.epoch,
            caller=line.caller,
        )
        for line in lines
    ]
    return caching.answer(request, JournalBody(items=items, next=following))


@router.post(
    "/drains/{id}/approve",
    response_model=RequestedDrainBody,
    responses=declared(401, 403, 404, 409, 412, 422, 428, 503),
)
def approve(
    house: TheHouse,
    caller: Actor,
    once: Once,
    id: str,  # noqa: A002
    if_match: Annotated[str | None, Header(max_length=2048)] = None,
) -> Response:
    """Let it begin, if its plan is that whose `etag` is sent as If-Match (numbers may move by 5 %)."""
    _find_drain(house, id)
    if if_match is None:
        raise HttpProblem(
            428, "Send If-Match with the drain's etag, so that what was shown is what is approved."
        )
    try:
        return answer_wish(
            house, once, id, lambda control, now: control.approve(id, if_match, caller.name, now)
        )
    except PlanMoved as moved:
        shown = DrainBody(**_row(house, moved.drain)).model_dump(mode="json", by_alias=True)
        raise HttpProblem(412, str(moved), changes=list(moved.changes), drain=shown) from moved


WISHED: dict[str, Any] = {
    "response_model": RequestedDrainBody,
    "responses": declared(401, 403, 404, 409, 422, 503),
}


@router.post("/drains/{id}/reject", **WISHED)
def reject(house: TheHouse, caller: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """End it while it is proposed, of which nothing was touched; 409 where it was approved meanwhile."""
    return answer_wish(house, once, id, lambda control, now: control.reject(id, caller.name, now))


@router.post("/drains/{id}/pause", **WISHED)
def pause(house: TheHouse, caller: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """Pause it until it is resumed; what is on its way arrives."""
    return answer_wish(house, once, id, lambda control, now: control.pause(id, caller.name, now))


@router.post("/drains/{id}/resume", **WISHED)
def resume(house: TheHouse, caller: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """Let it go on."""
    return answer_wish(house, once, id, lambda control, now: control.resume(id, caller.name, now))


@router.post("/drains/{id}/cancel", **WISHED)
def cancel(house: TheHouse, caller: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """Give it up and put everything back."""
    return answer_wish(house, once, id, lambda control, now: control.cancel(id, caller.name, now))


@router.post("/drains/{id}/hand_over", **{**WISHED, "response_model": HandedOverBody})
def hand_over(house: TheHouse, caller: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """Say that the verified disk may be pulled; answers with what is left to do, in order."""
    _find_drain(house, id)

    def handed_over() -> HandedOverBody:
        drain = house.ask(lambda control, now: control.hand_over(id, caller.name, now))
        left = house.control.left_to_do(drain)
        tasks = [TaskBody(what=task.what, command=task.command) for task in left.tasks]
        return HandedOverBody(**_row(house, drain), orchestrator=left.orchestrator.value, tasks=tasks)

    return once.answer(handed_over)


def answer_wish(house: House, once: Once, id_: str, wish: Callable[[Control, datetime], Drain]) -> Response:
    """Carry a person's wish about a drain out, once, and answer with the drain. Raises Problem."""
    _find_drain(house, id_)
    return once.answer(lambda: _requested(house, house.ask(wish)))


def _requested(house: House, drain: Drain) -> RequestedDrainBody:
    return RequestedDrainBody(**_row(house, drain), acting=acting_body(house))


def _find_drain(house: House, id_: str) -> Drain:
    """The drain of that id. Raises Problem."""
    found = house.store.drain(id_)
    if found is None:
        raise HttpProblem(404, f"There is no drain {id_}.", listed_at="/api/v1/drains")
    return found


def _row(house: House, drain: Drain) -> dict[str, Any]:
    return {
        "id": drain.id,
        "device": drain.device,
        "osds": list(drain.osds),
        "state": drain.state,
        "state_text": describe_state(drain.state, drain.intent),
        "intent": drain.intent,
        "asked_by": drain.asked_by,
        "requester": requester_body(drain.asked_by),
        "reason": drain.reason,
        "created_at": drain.created_at,
        "updated_at": drain.updated_at,
        "held_by": list(drain.held_by),
        "ways_out": way_out_bodies(house.control.ways_out.get(drain.id, ()) if house.has_cluster else ()),
        "insistence": insistence_body(drain, house.clock.now()),
        "ended_why": drain.ended_why,
        "etag": seals.seal(drain),
        "progress": ProgressBody.model_validate(drain.progress, from_attributes=True),
        "plan": plan_body(drain.plan, house.fleet.view) if drain.plan else None,
        "left_hours": None if house.halted() else left(drain, house.timelines.of(drain.id)),
        "took_hours": house.fleet.past.of(drain),
    }


def _whole(house: House, drain: Drain) -> WholeDrainBody:
    now = house.clock.now()
    judged = house.control.guards(drain.id, now) if house.has_cluster else ()
    ways = house.control.list_ways_out(drain.id, now) if house.has_cluster else ()
    samples = house.timelines.of(drain.id)
    return WholeDrainBody(
        **{**_row(house, drain), "ways_out": way_out_bodies(ways)},
        acting=acting_body(house),
        back_hours=back(drain, house.fleet.view, house.control.policy) if house.has_cluster else None,
        read_errors=describe_read_errors(house, drain),
        guards=guard_bodies(judged),
        timeline=TimelineBody(
            t=[round(one.at.timestamp() * 1000) for one in samples],
            bytes_left=[one.bytes_left for one in samples],
            in_flight=[one.in_flight for one in samples],
            latency_ratio=[one.latency_ratio for one in samples],
            holds=[HoldBody(from_=hold.start, to=hold.end, why=hold.why) for hold in holds(samples)],
        ),
    )
