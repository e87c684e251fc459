"""All error answers over HTTP: application/problem+json (RFC 9457), written in this one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.responses import Response

from predrain.actions.cluster.cluster_port import ClusterNotReadYet, ClusterUnreachable
from predrain.actions.cluster.signed_keys import NoSigningKey, Unverified
from predrain.data.drain import DrainStands, NoSuchTarget
from predrain.data.log.log_port import LogFull
from predrain.data.refusal import Refusal
from predrain.data.store.store_faults import StoreRefusal
from predrain.data.store.store_port import RevisionConflict
from predrain.service.drains.drain_requests import (
    LOOK_AGAIN_SECONDS,
    RefusedElsewhere,
    may_pass,
)
from predrain.service.rest.service_state_answers import ActiveServiceBody
from predrain.service.runtime.service_lease import NotActive

MEDIA_TYPE = "application/problem+json"
MOST_FAULTS = 20
"""The most faults of a request that an answer lists."""
MOST_TOLD = 3
"""The most of these faults that the answer's sentence names as well."""
LONGEST_PLACE, LONGEST_FAULT = 100, 200
"""The most characters of the place of a fault, which may be a key that the sender chose, and of its description."""
LONGEST_DETAIL = 2_000
"""The most characters of a problem's sentence."""
STANDBY_RETRY_SECONDS = "10"
"""Seconds after which a request that a standby refused is sent again, as a header. A standby takes over in 18 s."""


class ProblemBody(BaseModel):
    """A problem and its cure. Further members may follow (`errors`, `drain`, `waits_for`, `active`)."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str


class HttpProblem(Exception):
    """An error answer. Code below a route raises it, and a handler turns it into the answer."""

    def __init__(
        self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.members = status, detail, headers, members


def declare_problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the `responses=` of a route that may answer with these problems."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemBody"}}},
        }
        for status in statuses
    }


def build_problem_response(
    status: int, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any
) -> JSONResponse:
    """Return a problem as a response."""
    title, detail = HTTPStatus(status).phrase, shorten_text(detail, LONGEST_DETAIL)
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **members}
    return JSONResponse(body, status, media_type=MEDIA_TYPE, headers=headers)


def shorten_text(text: str, most: int) -> str:
    """Return `text`, cut to `most` characters with an ellipsis if it is longer."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _list_request_faults(error: RequestValidationError) -> tuple[list[dict[str, str]], int]:
    """Return the first faults of a request, without the sent values, and the number of further faults."""
    all_of_them = error.errors()
    faults = [
        {
            "where": shorten_text(".".join(str(part) for part in one["loc"]), LONGEST_PLACE),
            "what": shorten_text(one["msg"], LONGEST_FAULT),
        }
        for one in all_of_them[:MOST_FAULTS]
    ]
    return faults, max(0, len(all_of_them) - MOST_FAULTS)


def _handle_http_problem(_: Request, error: HttpProblem) -> Response:
    return build_problem_response(error.status, error.detail, headers=error.headers, **error.members)


def _handle_http_exception(request: Request, error: HTTPException) -> Response:
    detail = f"{request.url.path}: {error.detail}" if error.status_code == 404 else str(error.detail)
    return build_problem_response(error.status_code, detail, headers=error.headers)


def _handle_invalid_request(_: Request, error: RequestValidationError) -> Response:
    faults, more = _list_request_faults(error)
    told = "; ".join(f"{fault['where']}: {fault['what']}" for fault in faults[:MOST_TOLD])
    left = len(faults) - MOST_TOLD + more
    told += f"; and {left} more" if left > 0 else ""
    return build_problem_response(422, f"The request cannot be used: {told}", errors=faults)


def _handle_unknown_target(_: Request, error: NoSuchTarget) -> Response:
    return build_problem_response(422, str(error))


def _handle_existing_drain(_: Request, error: DrainStands) -> Response:
    return build_problem_response(409, str(error), drain=error.drain.id)


def _handle_remote_refusal(_: Request, error: RefusedElsewhere) -> Response:
    return (
        build_problem_response(409, str(error), drain=error.drain)
        if error.drain
        else build_problem_response(409, str(error))
    )


def _handle_store_refusal(_: Request, error: StoreRefusal) -> Response:
    told = f"{str(error)[:1].upper()}{str(error)[1:]}"
    return build_problem_response(
        503, f"The store does not do it now. {told}.", headers={"Retry-After": "10"}
    )


def _handle_standby(_: Request, error: NotActive) -> Response:
    active = (
        None if error.active is None else ActiveServiceBody.from_active(error.active).model_dump(mode="json")
    )
    told = f"Nothing of this request was accepted: {error}. Send it there, or again in a few seconds."
    return build_problem_response(503, told, headers={"Retry-After": STANDBY_RETRY_SECONDS}, active=active)


def _handle_refusal(_: Request, error: Refusal) -> Response:
    return build_problem_response(409, str(error))


def _handle_revision_conflict(_: Request, error: RevisionConflict) -> Response:
    return build_problem_response(
        409, f"Another request changed it at the same moment ({error}); look again and repeat."
    )


def _handle_full_log(_: Request, error: LogFull) -> Response:
    told = str(error) or "The log cannot take more; make room on its file system, then send again"
    return build_problem_response(
        503, f"Nothing of this request was accepted. {told}", headers={"Retry-After": "30"}
    )


def _handle_unreachable_cluster(_: Request, error: ClusterUnreachable) -> Response:
    return _answer_unseen(f"The cluster does not answer ({error}); nothing was changed, try again.", error)


def _handle_unseen_cluster(_: Request, error: ClusterNotReadYet) -> Response:
    return _answer_unseen(str(error), error.__cause__)


def _handle_unverified_signature(_: Request, error: ClusterUnreachable) -> Response:
    return build_problem_response(409, f"Nothing was changed. {error}.")


def _handle_unexpected_error(request: Request, error: Exception) -> Response:
    structlog.get_logger().error("request failed", path=request.url.path, exc_info=error)
    return build_problem_response(
        500, f"Unexpected {type(error).__name__}; the service's log has the traceback."
    )


def _answer_unseen(detail: str, cause: BaseException | None) -> JSONResponse:
    """Return a 503, with Retry-After and `waits_for` if the cluster may answer soon. `cause`: see `may_pass`."""
    if not may_pass(cause):
        return build_problem_response(503, detail)
    return build_problem_response(
        503, detail, headers={"Retry-After": str(LOOK_AGAIN_SECONDS)}, waits_for="cluster"
    )


_HANDLERS: tuple[tuple[type[Exception], Callable[..., Response]], ...] = (
    (HttpProblem, _handle_http_problem),
    (HTTPException, _handle_http_exception),
    (RequestValidationError, _handle_invalid_request),
    (NoSuchTarget, _handle_unknown_target),
    (DrainStands, _handle_existing_drain),
    (RefusedElsewhere, _handle_remote_refusal),
    (StoreRefusal, _handle_store_refusal),
    (NotActive, _handle_standby),
    (Refusal, _handle_refusal),
    (RevisionConflict, _handle_revision_conflict),
    (LogFull, _handle_full_log),
    (ClusterUnreachable, _handle_unreachable_cluster),
    (ClusterNotReadYet, _handle_unseen_cluster),
    (Unverified, _handle_unverified_signature),
    (NoSigningKey, _handle_unverified_signature),
    (Exception, _handle_unexpected_error),
)


def install_error_handlers(app: FastAPI) -> None:
    """Give `app` its error handlers, so that no traceback and no other kind of error leaves it."""
    for kind, handler in _HANDLERS:
        app.add_exception_handler(kind, handler)
