"""What a route works with: the house behind the app, and what is kept beside it between two requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from service.fleet import Sight
from service.house import SIGHT, House
from service.rest.caching import Answer


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


async def in_turn(
    request: Request, name: str, ready: Callable[[], Answer | None], make: Callable[[], Answer]
) -> Response:
    """The answer that stands, else the one that `make` makes, which takes a while.

    After a change hundreds ask at once for what one has to make. The others wait here: each in a thread of its own,
    they would keep every other request out of them.
    """
    found = ready()
    if found is None:
        turn: asyncio.Lock = await kept(f"turn at {name}", lambda _: asyncio.Lock())(request)
        async with turn:
            found = ready()
            if found is None:
                return await run_in_threadpool(lambda: make().to(request))
    return found.to(request)


async def _sight(request: Request) -> Sight:
    house: House = request.app.state.house
    found: Sight | None = house.made(SIGHT)
    if found is not None:
        return found
    turn: asyncio.Lock = await kept("turn at the sight", lambda _: asyncio.Lock())(request)
    async with turn:
        found = house.made(SIGHT)
        return found if found is not None else await run_in_threadpool(house.sight)


TheHouse = Annotated[House, Depends(_house)]
TheSight = Annotated[Sight, Depends(_sight)]
"""Everything known now. Whoever asks while it is put together waits for it outside of the threads."""
