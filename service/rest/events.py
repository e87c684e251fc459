"""`GET events`: server-sent events that say what changed, so that the page fetches only that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fastapi import APIRouter, Header
from fastapi.sse import EventSourceResponse, ServerSentEvent

from data.clock import Clock
from service.changes import Changes
from service.rest import problems
from service.rest.bodies import Body
from service.rest.guarding import Reader
from service.rest.within import TheHouse

router = APIRouter(tags=["events"])
COALESCE_SECONDS = 0.25
HEARTBEAT_SECONDS = 10.0


class ChangedBody(Body):
    """Which nouns changed since the event before."""

    kinds: list[str]
    at: str


@router.get("/events", response_class=EventSourceResponse, responses=problems.declared(401))
async def events(
    house: TheHouse, _: Reader, last_event_id: str | None = Header(None, max_length=32)
) -> AsyncIterator[ServerSentEvent]:
    """`changed` at most every 250 ms; a comment every 10 s; `Last-Event-ID` goes on where a listener was."""
    seen = int(last_event_id) if last_event_id and last_event_id.isdecimal() else house.changes.number
    yield ServerSentEvent(comment="listening", retry=2000)
    async for event in _changes(house.changes, min(seen, house.changes.number), house.clock):
        yield event


async def _changes(changes: Changes, seen: int, clock: Clock) -> AsyncIterator[ServerSentEvent]:
    quiet = 0.0
    while not changes.closed:
        number, kinds = changes.since(seen)
        if kinds:
            seen, quiet = number, 0.0
            body = ChangedBody(kinds=sorted(kinds), at=clock.now().isoformat().replace("+00:00", "Z"))
            yield ServerSentEvent(event="changed", id=str(number), data=body)
        elif quiet >= HEARTBEAT_SECONDS:
            quiet = 0.0
            yield ServerSentEvent(comment="still here")
        await asyncio.sleep(COALESCE_SECONDS)
        quiet += COALESCE_SECONDS
