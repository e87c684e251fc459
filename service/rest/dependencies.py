"""Dependencies of routes: the application behind the app, and objects that last between two requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from predrain.service.app.application import FLEET_SNAPSHOT, Application
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.rest.admission import ThreadPlace
from predrain.service.rest.caller_classes import PLACE_STATE
from predrain.service.rest.http_caching import CachedContent

Made = TypeVar("Made")


async def _get_application(request: Request) -> Application:  # async, because this needs no thread
    application: Application = request.app.state.application
    return application


def create_singleton_dependency(name: str, make: Callable[[Application], Any]) -> Callable[[Request], Any]:
    """Return a dependency on the object that `make` creates of the application, once for all requests."""

    async def found(request: Request) -> Any:
        state = request.app.state
        if not hasattr(state, "kept"):
            state.kept = {}
        if name not in state.kept:
            state.kept[name] = make(state.application)
        return state.kept[name]

    return found


async def made_once(
    request: Request, name: str, ready: Callable[[], Made | None], make: Callable[[], Made]
) -> Made:
    """Return the ready result, else the result of `make`, which takes a while.

    After a change hundreds of requests need the same new result, and one of them makes it. The others wait here without
    a thread, and without their place among the threads of their class. If each held a thread, they would keep out all
    other requests.
    """
    found = ready()
    if found is None:
        turn: asyncio.Lock = await create_singleton_dependency(f"turn at {name}", lambda _: asyncio.Lock())(
            request
        )
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
    """Return the response of the ready content, else of the content that `make` builds."""

    def standing() -> Response | None:
        found = ready()
        return None if found is None else found.build_response(request)

    return await made_once(request, name, standing, lambda: make().build_response(request))


async def _load_fleet_snapshot(request: Request) -> FleetSnapshot:
    application: Application = request.app.state.application
    return await made_once(
        request, "the snapshot", lambda: application.find_derived(FLEET_SNAPSHOT), application.get_snapshot
    )


TheApplication = Annotated[Application, Depends(_get_application)]
TheSnapshot = Annotated[FleetSnapshot, Depends(_load_fleet_snapshot)]
"""The snapshot of all that is known now. Requests that come while it is built wait for it outside of the threads."""
