"""Every error that leaves over HTTP: application/problem+json (RFC 9457), written in this one place."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.responses import Response

from predrain.actions.cluster.port import ClusterUnreachable
from predrain.actions.cluster.signed_keys import NoSigningKey, Unverified
from predrain.data.drain import DrainStands
from predrain.data.log.port import LogFull
from predrain.data.refusal import Refusal
from predrain.data.store.faults import StoreRefusal
from predrain.data.store.port import RevisionConflict
from predrain.service.drains.drain_requests import (
    LOOK_AGAIN_SECONDS,
    NotSeen,
    RefusedElsewhere,
    UnknownTarget,
    may_pass,
)

MEDIA_TYPE = "application/problem+json"
MOST_FAULTS = 20
"""Faults of a request that an answer lists."""
MOST_TOLD = 3
"""Of these, how many stand in its sentence as well."""
LONGEST_PLACE, LONGEST_FAULT = 100, 200
"""Characters of where a fault is, which may be a key that the sender made up, and of what it is."""
LONGEST_DETAIL = 2_000
"""Characters of a problem's sentence."""


class ProblemBody(BaseModel):
    """What went wrong and what to do about it. Further members may follow (`errors`, `drain`, `waits_for`)."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str


class HttpProblem(Exception):
    """Raise it anywhere below a route; it becomes the answer."""

    def __init__(
        self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.members = status, detail, headers, members


def declared(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a route that may answer with these problems."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemBody"}}},
        }
        for status in statuses
    }


def answer(
    status: int, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any
) -> JSONResponse:
    """A problem as a response."""
    title, detail = HTTPStatus(status).phrase, shorten_text(detail, LONGEST_DETAIL)
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **members}
    return JSONResponse(body, status, media_type=MEDIA_TYPE, headers=headers)


def shorten_text(text: str, most: int) -> str:
    """`text`, or as much of it as `most` characters hold, with an ellipsis where it was cut."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _faults(error: RequestValidationError) -> tuple[list[dict[str, str]], int]:
    """The first faults of a request, without what was sent, and how many more there are."""
    all_of_them = error.errors()
    faults = [
        {
            "where": shorten_text(".".join(str(part) for part in one["loc"]), LONGEST_PLACE),
            "what": shorten_text(one["msg"], LONGEST_FAULT),
        }
        for one in all_of_them[:MOST_FAULTS]
    ]
    return faults, max(0, len(all_of_them) - MOST_FAULTS)


def install(app: FastAPI) -> None:
    """Give `app` its handlers: nothing leaves it as a traceback or as another kind of error."""

    @app.exception_handler(HttpProblem)
    def _problem(_: Request, error: HttpProblem) -> Response:
        return answer(error.status, error.detail, headers=error.headers, **error.members)

    @app.exception_handler(HTTPException)
    def _http(request: Request, error: HTTPException) -> Response:
        detail = f"{request.url.path}: {error.detail}" if error.status_code == 404 else str(error.detail)
        return answer(error.status_code, detail, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    def _invalid(_: Request, error: RequestValidationError) -> Response:
        faults, more = _faults(error)
        told = "; ".join(f"{fault['where']}: {fault['what']}" for fault in faults[:MOST_TOLD])
        left = len(faults) - MOST_TOLD + more
        told += f"; and {left} more" if left > 0 else ""
        return answer(422, f"The request cannot be used: {told}", errors=faults)

    @app.exception_handler(UnknownTarget)
    def _unknown(_: Request, error: UnknownTarget) -> Response:
        return answer(422, str(error))

    @app.exception_handler(DrainStands)
    def _stands(_: Request, error: DrainStands) -> Response:
        return answer(409, str(error), drain=error.drain.id)

    @app.exception_handler(RefusedElsewhere)
    def _refused_elsewhere(_: Request, error: RefusedElsewhere) -> Response:
        return answer(409, str(error), drain=error.drain) if error.drain else answer(409, str(error))

    @app.exception_handler(StoreRefusal)
    def _storeless(_: Request, error: StoreRefusal) -> Response:
        told = f"{str(error)[:1].upper()}{str(error)[1:]}"
        return answer(503, f"The store does not do it now. {told}.", headers={"Retry-After": "10"})

    @app.exception_handler(Refusal)
    def _refusal(_: Request, error: Refusal) -> Response:
        return answer(409, str(error))

    @app.exception_handler(RevisionConflict)
    def _conflict(_: Request, error: RevisionConflict) -> Response:
        return answer(409, f"Somebody else changed it at the same moment ({error}); look again and repeat.")

    @app.exception_handler(LogFull)
    def _full(_: Request, error: LogFull) -> Response:
        told = str(error) or "The log cannot take more; make room on its file system, then send again"
        return answer(503, f"Nothing of this request was accepted. {told}", headers={"Retry-After": "30"})

    @app.exception_handler(ClusterUnreachable)
    def _unreachable(_: Request, error: ClusterUnreachable) -> Response:
        return _answer_unseen(
            f"The cluster does not answer ({error}); nothing was changed, try again.", error
        )

    @app.exception_handler(NotSeen)
    def _unseen(_: Request, error: NotSeen) -> Response:
        return _answer_unseen(str(error), error.__cause__)

    @app.exception_handler(Unverified)
    @app.exception_handler(NoSigningKey)
    def _unverified(_: Request, error: ClusterUnreachable) -> Response:
        return answer(409, f"Nothing was changed. {error}.")

    @app.exception_handler(Exception)
    def _unexpected(request: Request, error: Exception) -> Response:
        structlog.get_logger().error("request failed", path=request.url.path, exc_info=error)
        return answer(500, f"Unexpected {type(error).__name__}; the service's log has the traceback.")


def _answer_unseen(detail: str, cause: BaseException | None) -> JSONResponse:
    """503; with Retry-After and `waits_for`, where the cluster may answer soon. `cause`: see `may_pass`."""
    if not may_pass(cause):
        return answer(503, detail)
    return answer(503, detail, headers={"Retry-After": str(LOOK_AGAIN_SECONDS)}, waits_for="cluster")
