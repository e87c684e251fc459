"""What a route works with: the house behind the app, and what is kept beside it between two requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from predrain.service.application import SIGHT, House
from predrain.service.fleet import FleetSnapshot
from predrain.service.rest.admission import ThreadPlace
from predrain.service.rest.caching import CachedContent
from predrain.service.rest.caller_classes import PLACE_STATE

Made = TypeVar("Made")


async def _house(request: Request) -> House:  # no thread is needed to hand it over
    house: House = request.app.state.house
    return house


def kept(name: str, make: Callable[[House], Any]) -> Callable[[Request], Any]:
    """A dependency: what `make` makes of the house, once for all requests to it."""

    async def found(request: Request) -> Any:
        state = request.app.state
        if not hasattr(state, "kept"):
            state.kept = {}
        if name not in state.kept:
            state.kept[name] = make(state.house)
        return state.kept[name]

    return found


async def made_once(
    request: Request, name: str, ready: Callable[[], Made | None], make: Callable[[], Made]
) -> Made:
    """What stands, else what `make` makes, which takes a while.

    After a change hundreds ask at once for what one has to make. The others wait here without a thread, and without
    their place among the threads of their class: each in a thread of its own, they would keep every other request out.
    """
    found = ready()
    if found is None:
        turn: asyncio.Lock = await kept(f"turn at {name}", lambda _: asyncio.Lock())(request)
        place: ThreadPlace | None = request.scope.get("state", {}).get(PLACE_STATE)
        await (turn.acquire() if place is None else place.wait_outside(turn))
        try:
            found = ready()
            if found is None:
                found = await run_in_threadpool(make)
        finally:
            turn.release()
    return found


async def in_turn(
    request: Request, name: str, ready: Callable[[], CachedContent | None], make: Callable[[], CachedContent]
) -> Response:
    """The response to the answer that stands, else to the one that `make` makes."""

    def standing() -> Response | None:
        found = ready()
        return None if found is None else found.to(request)

    return await made_once(request, name, standing, lambda: make().to(request))


async def _sight(request: Request) -> FleetSnapshot:
    house: House = request.app.state.house
    return await made_once(request, "the sight", lambda: house.made(SIGHT), house.sight)


TheHouse = Annotated[House, Depends(_house)]
TheSight = Annotated[FleetSnapshot, Depends(_sight)]
"""Everything known now. Whoever asks while it is put together waits for it outside of the threads."""
