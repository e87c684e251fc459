"""`GET events`: server-sent events that say what changed, so that the page fetches only that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import monotonic

from fastapi import APIRouter, Header, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from predrain.data.clock import Clock
from predrain.service.changes import SOONEST_SECONDS, ChangeKind, Changes
from predrain.service.rest import problems
from predrain.service.rest.bodies import ResponseBody
from predrain.service.rest.guarding import Reader, reads_still
from predrain.service.rest.within import TheHouse

router = APIRouter(tags=["events"])
HEARTBEAT_SECONDS = 10.0
LOOKS = 8
"""Of a listener in the time between two changes that it may hear of."""


class ChangedBody(ResponseBody):
    """Which nouns changed since the event before."""

    kinds: list[str]
    at: str


@router.get("/events", response_class=EventSourceResponse, responses=problems.declared(401))
async def events(
    request: Request, house: TheHouse, _: Reader, last_event_id: str | None = Header(None, max_length=32)
) -> AsyncIterator[ServerSentEvent]:
    """`changed` at most every 250 ms, less often for more than 12 listeners (every 4 s for 200); a comment every 10 s;
    `Last-Event-ID` goes on where one was. It ends soon after the session or token that it began with.
    """
    seen = int(last_event_id) if last_event_id and last_event_id.isdecimal() else house.changes.number
    yield ServerSentEvent(comment="listening", retry=2000)
    judged = monotonic()
    with house.changes.listening():
        async for event in _changes(house.changes, min(seen, house.changes.number), house.clock):
            if monotonic() - judged >= HEARTBEAT_SECONDS:
                if not await run_in_threadpool(reads_still, request):
                    return
                judged = monotonic()
            yield event


async def _changes(changes: Changes, seen: int, clock: Clock) -> AsyncIterator[ServerSentEvent]:
    quiet = changes.pace
    while not changes.closed:
        number, kinds = changes.since(seen) if quiet >= changes.pace else (seen, frozenset[ChangeKind]())
        if kinds:
            seen, quiet = number, 0.0
            body = ChangedBody(kinds=sorted(kinds), at=clock.now().isoformat().replace("+00:00", "Z"))
            yield ServerSentEvent(event="changed", id=str(number), data=body)
        elif quiet >= HEARTBEAT_SECONDS:
            quiet = 0.0
            yield ServerSentEvent(comment="still here")
        # Two hundred who looked four times a second would take a twelfth of the time of all who ask.
        rest = max(SOONEST_SECONDS, changes.pace / LOOKS)
        await asyncio.sleep(rest)
        quiet += rest
