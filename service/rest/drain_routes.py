"""`drains`: proposed, in progress and ended drains, with plan, guards, curve and journal, and the requests
about them.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from predrain.actions.controller.person_request import PersonRequest, RequestKind
from predrain.actions.controller.plan_etags import PlanChanged, encode_plan_etag
from predrain.actions.core.messages import describe_state, state_names_intent
from predrain.data.drain import Drain, DrainState, Intent, JournalEvent
from predrain.data.ids import OsdId
from predrain.data.outside_text import PATTERN, REASON
from predrain.service.app.application import Application
from predrain.service.fleet.drain_durations import estimate_cancel_hours, estimate_hours_left
from predrain.service.fleet.drain_timeline import find_hold_periods
from predrain.service.rest import http_caching
from predrain.service.rest.acting_process_answers import (
    ActingBody,
    RequesterBody,
    acting_body,
    requester_body,
)
from predrain.service.rest.authentication import Actor, Reader
from predrain.service.rest.cluster_paths import find_cluster
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.drain_hold_answers import (
    GuardBody,
    InsistenceBody,
    WayOutBody,
    guard_bodies,
    insistence_body,
    way_out_bodies,
)
from predrain.service.rest.failed_reads import describe_read_errors
from predrain.service.rest.idempotency import Once
from predrain.service.rest.outlook_routes import Cursor, Limit
from predrain.service.rest.plan_answers import PlanBody, WholePlanBody, plan_body, whole_plan_body
from predrain.service.rest.problem_answers import HttpProblem, declare_problem_responses
from predrain.service.rest.shared_bodies import ResponseBody, clean_field

router = APIRouter(tags=["drains"])


class ProgressBody(ResponseBody):
    """The progress of a drain's data."""

    planned_pgs: int
    moved_pgs: int
    planned_bytes: int
    moved_bytes: int
    in_flight: int
    budget: int
    lost_pgs: int
    """PGs whose copy on the old disk is gone without having been moved."""


class DrainBody(ResponseBody):
    """One drain. `etag` is what an approval sends as If-Match."""

    id: str
    cluster: str | None
    """The fsid of the drain's cluster, in which its id is unique; null before a cluster answered."""
    device: str | None
    osds: list[OsdId]
    state: DrainState
    state_text: str
    """The state in words for people; a fill and a quarantine have words of their own."""
    state_names_intent: bool
    """True if `state_text` shows the intent by itself, as "filling" does."""
    intent: Intent
    requested_by: str
    requester: RequesterBody
    reason: str
    created_at: datetime
    updated_at: datetime
    held_by: list[str]
    ways_out: list[WayOutBody]
    """The ways out that are open now to a drain that cannot go on by itself, as of the last poll."""
    insistence: InsistenceBody | None
    end_reason: str
    etag: str
    progress: ProgressBody
    plan: PlanBody | None
    remaining_hours: float | None
    """Hours that the drain still takes, at the pace so far, or by the plan before enough has moved. Null where no
    estimate is possible, or while the drain is not under way or is held."""
    duration_hours: float | None
    """Hours from the first step to the end of a drain that is over; null for one that never began."""


class DrainPage(ResponseBody):
    """All drains, newest first."""

    items: list[DrainBody]
    next: str | None
    acting: ActingBody


class RequestedDrainBody(DrainBody):
    """A drain as a request left it, and the controller that acts on it. Without a controller nothing happens to it."""

    acting: ActingBody


class HoldBody(ResponseBody):
    """A time in which the drain was held, and the reason. `to` is null while the hold lasts."""

    from_: datetime = Field(serialization_alias="from")
    to: datetime | None
    reason: str


class TimelineBody(ResponseBody):
    """Curves on one axis of milliseconds since 1970."""

    t: list[int]
    bytes_left: list[int]
    in_flight: list[int]
    latency_ratio: list[float | None]
    holds: list[HoldBody]


class WholeDrainBody(RequestedDrainBody):
    """A drain with every guard and its curve."""

    cancel_hours: float | None
    """Hours that a cancel would take now; null where no data has moved, or no estimate is possible."""
    read_errors: list[str]
    """Sentences: failed reads of the disk that Ceph's health and the kernel of the disk's host report."""
    guards: list[GuardBody]
    timeline: TimelineBody


class JournalLineBody(ResponseBody):
    """One line of a drain's journal. `event`: the value that a program may decide by; null where the line is for people
    only."""

    at: datetime
    observed: str
    decision: str
    result: str
    epoch: int | None
    caller: str
    event: JournalEvent | None
    cluster: str | None
    """The fsid of the drain's cluster; null before a cluster answered."""


class JournalBody(ResponseBody):
    """Lines of a drain's journal, oldest first; `next` leads to those before them."""

    items: list[JournalLineBody]
    next: str | None


class TaskBody(ResponseBody):
    """One thing to do, and the command that does it, where there is one."""

    description: str
    command: str


class HandedOverBody(DrainBody):
    """A drain that was handed over, and what a person or the orchestrator does next."""

    orchestrator: str
    tasks: list[TaskBody]


class DrainRequest(BaseModel):
    """A drain that a person requests."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[str, clean_field(PATTERN, must_remain=True)] = Field(
        min_length=1, max_length=PATTERN.limit, description="`osd.N` or a device id."
    )
    intent: Intent = Intent.REPLACE
    reason: Annotated[str, Field(max_length=REASON.limit), clean_field(REASON)] = ""
    spare_reads: bool = Field(
        default=False,
        description="Reading the disk hurts clients: other OSDs become the primaries of its PGs first.",
    )


@router.get("/drains", response_model=DrainPage, responses=http_caching.declare_polled_responses(401, 422))
def list_drains(
    request: Request, application: TheApplication, _: Reader, limit: Limit = 1000, cursor: Cursor = None
) -> Response:
    """All drains, newest first."""
    shown, following = http_caching.paginate_newest_first(
        application.get_snapshot().drains, limit, cursor, lambda drain: drain.id
    )
    items = [DrainBody(**_build_drain_fields(application, one)) for one in shown]
    return http_caching.build_etag_response(
        request, DrainPage(items=items, next=following, acting=acting_body(application))
    )


@router.get("/plan", responses=declare_problem_responses(401, 409, 422, 503))
def draft_drain_plan(
    application: TheApplication,
    _: Reader,
    target: Annotated[str, Query(min_length=1, max_length=256)],
    intent: Intent = Intent.REPLACE,
) -> WholePlanBody:
    """Return the plan for draining `target`. Nothing is kept and nothing moves."""
    drain = application.control.draft(target, intent, application.clock.now())
    assert drain.plan is not None
    return whole_plan_body(drain.plan, application.fleet.view)


@router.post(
    "/drains",
    status_code=201,
    response_model=RequestedDrainBody,
    responses=declare_problem_responses(401, 403, 409, 422, 503),
)
def propose_drain(application: TheApplication, caller: Actor, once: Once, wanted: DrainRequest) -> Response:
    """Ask for a drain; it begins when it is approved."""
    request = PersonRequest(
        RequestKind.PROPOSE,
        application.clock.now(),
        caller.name,
        target=wanted.target,
        reason=wanted.reason.strip() or f"asked for by {caller.name}",
        intent=wanted.intent,
        spare_reads=wanted.spare_reads,
    )
    return once.respond_once(
        lambda: _build_requested_drain_body(application, application.execute_request(request)), 201
    )


@router.get(
    "/drains/{id}", response_model=WholeDrainBody, responses=http_caching.declare_polled_responses(401, 404)
)
def get_drain(request: Request, application: TheApplication, _: Reader, id: str) -> Response:  # noqa: A002
    """One drain with every guard and its curve."""
    return http_caching.build_etag_response(
        request, _build_whole_drain_body(application, _find_drain(application, id))
    )


@router.get(
    "/drains/{id}/plan",
    response_model=WholePlanBody,
    responses=http_caching.declare_polled_responses(401, 404),
)
def get_drain_plan(request: Request, application: TheApplication, _: Reader, id: str) -> Response:  # noqa: A002
    """The plan with every move, in order."""
    found = _find_drain(application, id).plan
    if found is None:
        raise HttpProblem(404, f"Drain {id} has no plan yet; it is made when the cluster was looked at.")
    return http_caching.build_etag_response(request, whole_plan_body(found, application.fleet.view))


@router.get(
    "/drains/{id}/journal",
    response_model=JournalBody,
    responses=http_caching.declare_polled_responses(401, 404),
)
def list_journal_lines(
    request: Request,
    application: TheApplication,
    _: Reader,
    id: str,  # noqa: A002
    limit: Limit = 10_000,
    cursor: Cursor = None,
) -> Response:
    """List the lines of a drain's journal, oldest first: the newest `limit` lines, or those before the cursor."""
    _find_drain(application, id)
    lines, following = http_caching.paginate_journal(partial(application.store.journal, id), limit, cursor)
    own = find_cluster(application)
    items = [
        JournalLineBody(
            at=line.at,
            observed=line.seen,
            decision=line.decided,
            result=line.answered,
            epoch=line.epoch,
            caller=line.caller,
            event=line.event,
            cluster=line.cluster or own,
        )
        for line in lines
    ]
    return http_caching.build_etag_response(request, JournalBody(items=items, next=following))


@router.post(
    "/drains/{id}/approve",
    response_model=RequestedDrainBody,
    responses=declare_problem_responses(401, 403, 404, 409, 412, 422, 428, 503),
)
def approve_drain_plan(
    application: TheApplication,
    caller: Actor,
    once: Once,
    id: str,  # noqa: A002
    if_match: Annotated[str | None, Header(max_length=2048)] = None,
) -> Response:
    """Let the drain begin if its plan still has the `etag` that is sent as If-Match (figures may change by 5 %)."""
    _find_drain(application, id)
    if if_match is None:
        raise HttpProblem(
            428, "Send If-Match with the drain's etag, so that what was shown is what is approved."
        )
    try:
        return answer_request(
            application,
            once,
            PersonRequest(RequestKind.APPROVE, application.clock.now(), caller.name, id, if_match),
        )
    except PlanChanged as moved:
        shown = DrainBody(**_build_drain_fields(application, moved.drain)).model_dump(
            mode="json", by_alias=True
        )
        raise HttpProblem(412, str(moved), changes=list(moved.changes), drain=shown) from moved


REQUESTED: dict[str, Any] = {
    "response_model": RequestedDrainBody,
    "responses": declare_problem_responses(401, 403, 404, 409, 422, 503),
}


@router.post("/drains/{id}/reject", **REQUESTED)
def reject_drain(application: TheApplication, caller: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """End a proposed drain, for which nothing was changed yet; 409 if the drain was approved meanwhile."""
    return answer_request(
        application, once, PersonRequest(RequestKind.REJECT, application.clock.now(), caller.name, id)
    )


@router.post("/drains/{id}/pause", **REQUESTED)
def pause_drain(application: TheApplication, caller: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """Pause the drain until it is resumed; PGs that are moving arrive."""
    return answer_request(
        application, once, PersonRequest(RequestKind.PAUSE, application.clock.now(), caller.name, id)
    )


@router.post("/drains/{id}/resume", **REQUESTED)
def resume_drain(application: TheApplication, caller: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """Let the drain go on."""
    return answer_request(
        application, once, PersonRequest(RequestKind.RESUME, application.clock.now(), caller.name, id)
    )


@router.post("/drains/{id}/cancel", **REQUESTED)
def cancel_drain(application: TheApplication, caller: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """Cancel the drain and put everything back."""
    return answer_request(
        application, once, PersonRequest(RequestKind.CANCEL, application.clock.now(), caller.name, id)
    )


@router.post("/drains/{id}/hand_over", **{**REQUESTED, "response_model": HandedOverBody})
def hand_over(application: TheApplication, caller: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """Confirm that the verified disk may be pulled. The answer lists what is left to do, in order."""
    _find_drain(application, id)

    request = PersonRequest(RequestKind.HAND_OVER, application.clock.now(), caller.name, id)

    def handed_over() -> HandedOverBody:
        drain = application.execute_request(request)
        left = application.control.left_to_do(drain)
        tasks = [TaskBody(description=task.what, command=task.command) for task in left.tasks]
        return HandedOverBody(
            **_build_drain_fields(application, drain), orchestrator=left.orchestrator.value, tasks=tasks
        )

    return once.respond_once(handed_over)


def answer_request(application: Application, once: Once, request: PersonRequest) -> Response:
    """Execute a person's request about a drain once, and answer with the drain. Raises HttpProblem."""
    _find_drain(application, request.drain)
    return once.respond_once(
        lambda: _build_requested_drain_body(application, application.execute_request(request))
    )


def _build_requested_drain_body(application: Application, drain: Drain) -> RequestedDrainBody:
    return RequestedDrainBody(**_build_drain_fields(application, drain), acting=acting_body(application))


def _find_drain(application: Application, id_: str) -> Drain:
    """Return the drain of that id. Raises HttpProblem."""
    found = application.store.drain(id_)
    if found is None:
        raise HttpProblem(404, f"There is no drain {id_}.", listed_at="/api/v1/drains")
    return found


def _build_drain_fields(application: Application, drain: Drain) -> dict[str, Any]:
    return {
        "id": drain.id,
        "cluster": find_cluster(application),
        "device": drain.device,
        "osds": list(drain.osds),
        "state": drain.state,
        "state_text": describe_state(drain.state, drain.intent),
        "state_names_intent": state_names_intent(drain.state, drain.intent),
        "intent": drain.intent,
        "requested_by": drain.asked_by,
        "requester": requester_body(drain.asked_by),
        "reason": drain.reason,
        "created_at": drain.created_at,
        "updated_at": drain.updated_at,
        "held_by": list(drain.held_by),
        "ways_out": way_out_bodies(
            application.control.ways_out.get(drain.id, ()) if application.has_cluster else ()
        ),
        "insistence": insistence_body(drain, application.clock.now()),
        "end_reason": drain.ended_why,
        "etag": encode_plan_etag(drain),
        "progress": ProgressBody.model_validate(drain.progress, from_attributes=True),
        "plan": plan_body(drain.plan, application.fleet.view) if drain.plan else None,
        "remaining_hours": None
        if application.find_halt_reason()
        else estimate_hours_left(drain, application.timelines.list_samples(drain.id)),
        "duration_hours": application.fleet.past.find_hours_taken(drain),
    }


def _build_whole_drain_body(application: Application, drain: Drain) -> WholeDrainBody:
    now = application.clock.now()
    judged = application.control.list_guard_answers(drain.id, now) if application.has_cluster else ()
    ways = application.control.list_ways_out(drain.id, now) if application.has_cluster else ()
    samples = application.timelines.list_samples(drain.id)
    return WholeDrainBody(
        **{**_build_drain_fields(application, drain), "ways_out": way_out_bodies(ways)},
        acting=acting_body(application),
        cancel_hours=estimate_cancel_hours(drain, application.fleet.view, application.control.policy)
        if application.has_cluster
        else None,
        read_errors=describe_read_errors(application, drain),
        guards=guard_bodies(judged),
        timeline=TimelineBody(
            t=[round(one.at.timestamp() * 1000) for one in samples],
            bytes_left=[one.bytes_left for one in samples],
            in_flight=[one.in_flight for one in samples],
            latency_ratio=[one.latency_ratio for one in samples],
            holds=[
                HoldBody(from_=hold.start, to=hold.end, reason=hold.why)
                for hold in find_hold_periods(samples)
            ],
        ),
    )
