"""`audit`: who asked for what, from where, and what was answered."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from predrain.service.access.audit import AUDIT
from predrain.service.rest import caching
from predrain.service.rest.bodies import ResponseBody
from predrain.service.rest.guarding import Admin
from predrain.service.rest.outlooks import Cursor, Limit
from predrain.service.rest.within import TheHouse

router = APIRouter(tags=["audit"])


class CallBody(ResponseBody):
    """One request that acted or was refused. `caller` is `nobody` where no token or session was good."""

    at: datetime
    caller: str
    source: str
    asked: str
    answered: str


class CallPage(ResponseBody):
    """The newest calls, oldest first; `next` leads to those before them."""

    items: list[CallBody]
    next: str | None


@router.get("/audit", response_model=CallPage, responses=caching.polled(401, 403, 422))
def audit(request: Request, house: TheHouse, _: Admin, limit: Limit = 200, cursor: Cursor = None) -> Response:
    """The record of all processes that share the store."""
    found, following = caching.lines(partial(house.store.journal, AUDIT), limit, cursor)
    items = [
        CallBody(at=line.at, caller=line.caller, source=line.seen, asked=line.decided, answered=line.answered)
        for line in found
    ]
    return caching.answer(request, CallPage(items=items, next=following))
