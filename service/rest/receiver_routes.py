"""`receivers`: the channels by which people get messages, and a test message by one of them."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Request
from starlette.responses import Response

from predrain.data.refusal import Refusal
from predrain.service.notifications.cause import Severity
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Actor, Reader
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.idempotency import Once
from predrain.service.rest.outlook_routes import Cursor, Limit
from predrain.service.rest.problem_answers import HttpProblem, declare_problem_responses
from predrain.service.rest.shared_bodies import ResponseBody

router = APIRouter(tags=["causes"])


class MessageReceiverBody(ResponseBody):
    """A channel, its route, and its deliveries since the start of this process. No address and no key is in it."""

    name: str
    min_severity: Severity
    only_hosts: list[str]
    only_racks: list[str]
    sent: int
    failed: int
    last_sent_at: datetime | None
    problem: str | None


class MessageReceiverList(ResponseBody):
    """A page of the channels that the settings name, by name."""

    items: list[MessageReceiverBody]
    next: str | None


class MessageReceiverTestBody(ResponseBody):
    """The result of a test message. `problem`: the reason if the receiver did not take it."""

    name: str
    delivered: bool
    problem: str | None


@router.get(
    "/receivers",
    response_model=MessageReceiverList,
    responses=http_caching.declare_polled_responses(401, 422),
)
def list_receivers(
    request: Request, application: TheApplication, _: Reader, limit: Limit = 1000, cursor: Cursor = None
) -> Response:
    """List the channels by which messages go out."""
    found = sorted(((one.name, one) for one in application.channel_states), key=lambda pair: pair[0])
    shown, following = http_caching.page_of(found, limit, cursor)
    items = [
        MessageReceiverBody(
            name=one.name,
            min_severity=one.route.min_severity,
            only_hosts=list(one.route.hosts),
            only_racks=list(one.route.racks),
            sent=one.deliveries.sent,
            failed=one.deliveries.failed,
            last_sent_at=one.deliveries.last,
            problem=one.trouble,
        )
        for one in shown
    ]
    return http_caching.build_etag_response(request, MessageReceiverList(items=items, next=following))


@router.post(
    "/receivers/{name}/test",
    response_model=MessageReceiverTestBody,
    responses=declare_problem_responses(401, 403, 404, 409, 422),
)
def send_test_message(application: TheApplication, caller: Actor, once: Once, name: str) -> Response:
    """Send a test message by one channel. An incident that it opens is ended at once."""
    if name not in {one.name for one in application.channel_states}:
        raise HttpProblem(404, f"There is no receiver {name}.", listed_at="/api/v1/receivers")

    def send() -> MessageReceiverTestBody:
        try:
            application.send_test_message(name, caller.name)
        except Refusal as refused:
            return MessageReceiverTestBody(name=name, delivered=False, problem=str(refused))
        return MessageReceiverTestBody(name=name, delivered=True, problem=None)

    return once.respond_once(send, 200)
