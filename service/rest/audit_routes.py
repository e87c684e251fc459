"""`audit`: the audited requests, each with its caller, its source and its answer."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from predrain.service.access.audit import AUDIT
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Admin
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.outlook_routes import Cursor, Limit
from predrain.service.rest.shared_bodies import ResponseBody

router = APIRouter(tags=["audit"])


class CallBody(ResponseBody):
    """One request that acted or was refused. `caller` is `nobody` where no token or session was good."""

    at: datetime
    caller: str
    source: str
    request: str
    result: str


class CallPage(ResponseBody):
    """The newest calls, oldest first; `next` leads to those before them."""

    items: list[CallBody]
    next: str | None


@router.get("/audit", response_model=CallPage, responses=http_caching.declare_polled_responses(401, 403, 422))
def list_audited_calls(
    request: Request, application: TheApplication, _: Admin, limit: Limit = 200, cursor: Cursor = None
) -> Response:
    """List the requests that acted or were refused, of all processes that share the store."""
    found, following = http_caching.paginate_journal(partial(application.store.journal, AUDIT), limit, cursor)
    items = [
        CallBody(at=line.at, caller=line.caller, source=line.seen, request=line.decided, result=line.answered)
        for line in found
    ]
    return http_caching.build_etag_response(request, CallPage(items=items, next=following))
