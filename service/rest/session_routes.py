"""`session`: sign in on the page with a token, show the signed-in caller, sign out. A script never sees the cookie."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from predrain.service.access.credentials import CredentialEnded
from predrain.service.access.tokens import Caller, Scope
from predrain.service.rest.authentication import (
    RequestAccess,
    access_of,
    authenticate_token,
    from_our_page,
    identify_caller,
    may_read_unnamed,
    session_of,
)
from predrain.service.rest.problem_answers import HttpProblem, declare_problem_responses
from predrain.service.rest.shared_bodies import ResponseBody

router = APIRouter(tags=["session"])
SIGN_IN = "/sign-in"
"""The address at which a browser begins the sign-in at a provider."""


class SessionBody(ResponseBody):
    """The person who is signed in; `name` is null for nobody. `csrf_token` goes into X-Predrain-CSRF-Token with each
    request that changes something.

    `can_read`: true if this browser may read. `sign_in_url`: the address at which people sign in at a provider, if
    there is one.
    """

    name: str | None
    scopes: list[Scope]
    csrf_token: str | None
    ends_at: datetime | None
    can_read: bool
    sign_in_url: str | None


class SignInRequest(BaseModel):
    """A token of predrain."""

    model_config = ConfigDict(extra="forbid")

    token: str = Field(min_length=1, max_length=500)


@router.get("/session", responses=declare_problem_responses(429))
def get_session(request: Request) -> SessionBody:
    """Return the person as whom this browser is signed in."""
    access = access_of(request)
    try:
        found = session_of(request)
    except CredentialEnded:
        found = None
    if found is None:
        return _build_anonymous_body(access, may_read_unnamed(request))
    caller = found.caller
    return SessionBody(
        name=caller.name,
        scopes=sorted(caller.scopes),
        csrf_token=found.word,
        ends_at=found.ends_at,
        can_read=caller.has_scope(Scope.READ),
        sign_in_url=_find_sign_in_path(access),
    )


@router.post(
    "/session",
    status_code=204,
    response_class=Response,
    responses=declare_problem_responses(401, 403, 422, 429),
)
def sign_in(request: Request, wanted: SignInRequest) -> Response:
    """Sign this browser in with a token; the answer sets the cookie."""
    from_our_page(request)
    caller = authenticate_token(request, wanted.token)
    request.state.caller = caller
    return start_browser_session(request, caller, Response(status_code=204))


@router.delete(
    "/session", status_code=204, response_class=Response, responses=declare_problem_responses(401, 403, 429)
)
def sign_out(request: Request) -> Response:
    """Sign out. The cookie is void from now on."""
    caller = identify_caller(request)
    if caller is None or session_of(request) is None:
        raise HttpProblem(401, "Nobody is signed in here.")
    access = access_of(request)
    access.sessions.sign_out(caller)
    answer = Response(status_code=204, headers={"Clear-Site-Data": '"cache"'})
    _set_session_cookie(request, answer, "", 0)
    return answer


def start_browser_session(request: Request, caller: Caller, answer: Response) -> Response:
    """Return `answer` with the cookie of a new session for `caller`. An old session of this browser is closed."""
    access = access_of(request)
    try:
        before = session_of(request)
    except CredentialEnded:
        before = None
    if before is not None:
        access.sessions.sign_out(before.caller)
    _set_session_cookie(
        request, answer, access.sessions.sign_in(caller), int(access.sessions.lasting.total_seconds())
    )
    return answer


def _set_session_cookie(request: Request, answer: Response, secret: str, seconds: int) -> None:
    access = access_of(request)
    answer.set_cookie(
        access.name_session_cookie(request),
        secret,
        max_age=seconds,
        path="/",
        secure=access.is_over_tls(request),
        httponly=True,
        samesite="strict",
    )


def _build_anonymous_body(access: RequestAccess, reads: bool) -> SessionBody:
    return SessionBody(
        name=None,
        scopes=[],
        csrf_token=None,
        ends_at=None,
        can_read=reads,
        sign_in_url=_find_sign_in_path(access),
    )


def _find_sign_in_path(access: RequestAccess) -> str | None:
    return None if access.provider is None else SIGN_IN
