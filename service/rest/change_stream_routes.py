"""`GET events`: server-sent events that name the changed parts, so that the page fetches only those."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import monotonic

from fastapi import APIRouter, Header, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from predrain.data.clock import Clock
from predrain.service.app.changes import SOONEST_SECONDS, ChangeFeed, ChangeKind
from predrain.service.rest import problem_answers
from predrain.service.rest.authentication import Reader, reads_still
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.shared_bodies import ResponseBody

router = APIRouter(tags=["events"])
HEARTBEAT_SECONDS = 10.0
LOOKS = 8
"""The polls of a listener between two changes that it may be notified of."""


class ChangedBody(ResponseBody):
    """Which nouns changed since the event before."""

    kinds: list[str]
    at: str


@router.get(
    "/events", response_class=EventSourceResponse, responses=problem_answers.declare_problem_responses(401)
)
async def stream_change_events(
    request: Request,
    application: TheApplication,
    _: Reader,
    last_event_id: str | None = Header(None, max_length=32),
) -> AsyncIterator[ServerSentEvent]:
    """`changed` at most every 250 ms, less often for more than 12 listeners (every 4 s for 200); a comment every 10 s;
    `Last-Event-ID` continues after that event. The stream ends soon after the session or token that it began with.
    """
    seen = int(last_event_id) if last_event_id and last_event_id.isdecimal() else application.changes.number
    yield ServerSentEvent(comment="listening", retry=2000)
    judged = monotonic()
    with application.changes.count_listener():
        async for event in _generate_change_events(
            application.changes, min(seen, application.changes.number), application.clock
        ):
            if monotonic() - judged >= HEARTBEAT_SECONDS:
                if not await run_in_threadpool(reads_still, request):
                    return
                judged = monotonic()
            yield event


async def _generate_change_events(
    changes: ChangeFeed, seen: int, clock: Clock
) -> AsyncIterator[ServerSentEvent]:
    quiet = changes.pace
    while not changes.is_closed:
        number, kinds = (
            changes.find_changes_since(seen) if quiet >= changes.pace else (seen, frozenset[ChangeKind]())
        )
        if kinds:
            seen, quiet = number, 0.0
            body = ChangedBody(kinds=sorted(kinds), at=clock.now().isoformat().replace("+00:00", "Z"))
            yield ServerSentEvent(event="changed", id=str(number), data=body)
        elif quiet >= HEARTBEAT_SECONDS:
            quiet = 0.0
            yield ServerSentEvent(comment="still here")
        # 200 listeners that polled four times a second would take a twelfth of the time of all requests.
        rest = max(SOONEST_SECONDS, changes.pace / LOOKS)
        await asyncio.sleep(rest)
        quiet += rest
