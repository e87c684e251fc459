"""Requests about disks: self-tests and lights of slots, and the exchange by which collectors fetch and report them.

A GET changes nothing. A host is asked by nobody: its collector asks for work.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from predrain.data.disk_request import DiskSelfTests, DiskVerb, RequestOutcome, WorkQuestion
from predrain.data.ids import DeviceId, HostName
from predrain.data.outside_text import HOST, is_clean
from predrain.data.self_test import SelfTestKind, SelfTestResult
from predrain.service.access.tokens import Caller, ForeignHost
from predrain.service.app.application import Application
from predrain.service.app.changes import ChangeKind
from predrain.service.disk_requests.request_book import StoredRequest
from predrain.service.disk_requests.request_desk import DiskRequestView, RequestHeld
from predrain.service.disk_requests.request_guards import RequestRefusal, RequestRefusalKind
from predrain.service.disk_requests.request_sentences import (
    RESULT_TEXTS,
    describe_request,
    describe_request_refusal,
)
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Actor, Ingester, Reader
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.device_routes import Id, known_device
from predrain.service.rest.idempotency import Once
from predrain.service.rest.problem_answers import HttpProblem, declare_problem_responses
from predrain.service.rest.reading_routes import require_own_host
from predrain.service.rest.shared_bodies import ResponseBody

router = APIRouter(tags=["devices"])


class SelfTestBody(ResponseBody):
    """A self-test of the drive's own log. `power_on_hours`: the drive's age at its end. `first_error_lba`: the first
    block that could not be read."""

    kind: SelfTestKind
    result: SelfTestResult
    failed: bool
    sentence: str
    power_on_hours: int | None
    first_error_lba: int | None


class RunningSelfTestBody(ResponseBody):
    """The self-test that runs. `kind` and `done_percent`: null where the drive does not report them."""

    kind: SelfTestKind | None
    done_percent: int | None


class SelfTestsBody(ResponseBody):
    """The self-tests that the drive reports, newest first. `short_minutes`, `long_minutes`: its own estimates."""

    read_at: datetime
    running: RunningSelfTestBody | None
    log: list[SelfTestBody]
    short_minutes: int | None
    long_minutes: int | None


class DiskRequestBody(ResponseBody):
    """A request about a disk. `sent_at`: its host fetched it. `outcome`: null while it has not ended. `slot`: as the
    enclosure names it."""

    id: str
    verb: DiskVerb
    by: str
    issued_at: datetime
    expires_at: datetime
    sent_at: datetime | None
    outcome: RequestOutcome | None
    ended_at: datetime | None
    sentence: str
    slot: str | None


class RequestRefusalBody(ResponseBody):
    """A reason why a request would be refused now, with its cure."""

    kind: RequestRefusalKind
    sentence: str


class RequestOptionBody(ResponseBody):
    """A request that a person may make; `refusals` is empty if it would be taken now."""

    verb: DiskVerb
    refusals: list[RequestRefusalBody]


class DiskRequestsBody(ResponseBody):
    """Self-tests and lights of one disk. `host`: null where no host reads it. `light`: as it was switched last through
    predrain; null if never. `open`: requests that have not ended; `ended`: the newest others."""

    device: str
    host: str | None
    slot: str | None
    light: Literal["on", "off"] | None
    self_tests: SelfTestsBody | None
    options: list[RequestOptionBody]
    open: list[DiskRequestBody]
    ended: list[DiskRequestBody]


class SelfTestRequest(BaseModel):
    """The kind of self-test."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["short", "long"]


class LocateRequest(BaseModel):
    """The wanted state of the light."""

    model_config = ConfigDict(extra="forbid")

    on: bool


class SignedRequestBody(ResponseBody):
    """A request as JSON text, and HMAC-SHA256 over that text in hex."""

    request: str
    signature: str


class WorkBody(ResponseBody):
    """The requests for the host. `stop`: disks on which a test that the collector started is to be ended."""

    requests: list[SignedRequestBody]
    stop: list[str]


@router.get(
    "/devices/{id:path}/requests",
    response_model=DiskRequestsBody,
    responses=http_caching.declare_polled_responses(401, 404),
)
def get_disk_requests(request: Request, application: TheApplication, _: Reader, id: Id) -> Response:  # noqa: A002
    """Return the self-tests of a disk, the requests about it, and what would be refused now."""
    snapshot, device = application.get_snapshot(), DeviceId(id)
    known_device(snapshot, device)
    view = application.disk_requests.view(snapshot, device)
    return http_caching.build_etag_response(request, _build_requests_body(device, view))


@router.post(
    "/devices/{id:path}/self-tests",
    status_code=202,
    response_model=DiskRequestBody,
    responses=declare_problem_responses(401, 403, 404, 409, 422),
)
def request_self_test(
    application: TheApplication,
    caller: Actor,
    once: Once,
    id: Id,  # noqa: A002
    wanted: SelfTestRequest,
) -> Response:
    """Ask the disk's host to start a self-test. The host fetches the request when it asks for work. 409 with
    `refusals` if a guard refuses."""
    verb = DiskVerb.LONG_TEST if wanted.kind == "long" else DiskVerb.SHORT_TEST
    return once.respond_once(lambda: _request(application, caller, DeviceId(id), verb), 202)


@router.post(
    "/devices/{id:path}/locate",
    status_code=202,
    response_model=DiskRequestBody,
    responses=declare_problem_responses(401, 403, 404, 409, 422),
)
def request_light(
    application: TheApplication,
    caller: Actor,
    once: Once,
    id: Id,  # noqa: A002
    wanted: LocateRequest,
) -> Response:
    """Ask the disk's host to switch the light of its slot. 409 with `refusals` if the host cannot be asked."""
    verb = DiskVerb.LOCATE_ON if wanted.on else DiskVerb.LOCATE_OFF
    return once.respond_once(lambda: _request(application, caller, DeviceId(id), verb), 202)


EXCHANGE: dict[str, Any] = {
    "response_model": WorkBody,
    "responses": declare_problem_responses(401, 403, 413, 422, 503),
    "openapi_extra": {
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
    },
}


@router.post("/disk-requests/exchange", **EXCHANGE)
async def exchange_work(request: Request, application: TheApplication, caller: Ingester) -> Response:
    """Take what a host allows, what became of its requests and the self-tests of its disks; return its requests."""
    body = await request.body()
    return await run_in_threadpool(_exchange, application, body, caller)


def _exchange(application: Application, body: bytes, caller: Caller) -> Response:
    try:
        question = msgspec.json.decode(body, type=WorkQuestion)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HttpProblem(422, f"The body is no question of a collector for work: {error}.") from error
    if not question.host or not is_clean(question.host, HOST.limit):
        raise HttpProblem(422, "A host name is one line without control characters.")
    try:
        require_own_host(application, caller, question.host)
    except ForeignHost as foreign:
        raise HttpProblem(403, f"{str(foreign)[:1].upper()}{str(foreign)[1:]}.") from foreign
    answer = application.disk_requests.exchange(application.get_snapshot(), question)
    if question.reports or question.tests or answer.requests or answer.stop:
        application.changes.notify_change(ChangeKind.DEVICES)
    return Response(msgspec.json.encode(answer), media_type="application/json")


def _request(application: Application, caller: Caller, device: DeviceId, verb: DiskVerb) -> DiskRequestBody:
    snapshot = application.get_snapshot()
    known_device(snapshot, device)
    try:
        taken = application.disk_requests.request(snapshot, device, verb, caller.name)
    except RequestHeld as held:
        refusals = [_build_refusal_body(one, verb, held.host).model_dump() for one in held.refusals]
        raise HttpProblem(409, str(held), refusals=refusals) from held
    application.changes.notify_change(ChangeKind.DEVICES)
    return _build_request_body(taken)


def _build_refusal_body(one: RequestRefusal, verb: DiskVerb, host: HostName) -> RequestRefusalBody:
    return RequestRefusalBody(kind=one.kind, sentence=describe_request_refusal(one, verb, host))


def _build_request_body(one: StoredRequest) -> DiskRequestBody:
    request = one.request
    return DiskRequestBody(
        id=request.id,
        verb=request.verb,
        by=request.by,
        issued_at=request.issued_at,
        expires_at=request.expires_at,
        sent_at=one.sent_at,
        outcome=one.outcome,
        ended_at=one.ended_at,
        sentence=describe_request(one),
        slot=one.slot,
    )


def _build_requests_body(device: DeviceId, view: DiskRequestView) -> DiskRequestsBody:
    lights = [one for one in view.ended if one.request.verb.test_kind is None]
    switched = next((one for one in lights if one.outcome is RequestOutcome.DONE), None)
    light: Literal["on", "off"] | None = None
    if switched is not None:
        light = "on" if switched.request.verb is DiskVerb.LOCATE_ON else "off"
    return DiskRequestsBody(
        device=device,
        host=view.host or None,
        slot=next((one.slot for one in lights if one.slot), None),
        light=light,
        self_tests=_build_self_tests_body(view.tests) if view.tests is not None else None,
        options=[
            RequestOptionBody(
                verb=verb, refusals=[_build_refusal_body(one, verb, view.host) for one in refusals]
            )
            for verb, refusals in view.refusals.items()
        ],
        open=[_build_request_body(one) for one in view.open],
        ended=[_build_request_body(one) for one in view.ended],
    )


def _build_self_tests_body(tests: DiskSelfTests) -> SelfTestsBody:
    state = tests.state
    running = state.running
    return SelfTestsBody(
        read_at=tests.read_at,
        running=RunningSelfTestBody(kind=running.kind, done_percent=running.done_percent)
        if running
        else None,
        log=[
            SelfTestBody(
                kind=one.kind,
                result=one.result,
                failed=one.result.is_failure,
                sentence=RESULT_TEXTS[one.result],
                power_on_hours=one.power_on_hours,
                first_error_lba=one.first_error_lba,
            )
            for one in state.log
        ],
        short_minutes=state.short_minutes,
        long_minutes=state.long_minutes,
    )
