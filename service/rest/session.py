"""`session`: sign in on the page with a token, see who one is, sign out. A script never sees the cookie."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from predrain.service.access.book import CredentialEnded
from predrain.service.rest.bodies import ResponseBody
from predrain.service.rest.guarding import (
    Access,
    access_of,
    from_our_page,
    holder,
    identify,
    may_read_unnamed,
    session_of,
)
from predrain.service.rest.problems import HttpProblem, declared
from predrain.service.tokens import Caller, Scope

router = APIRouter(tags=["session"])
SIGN_IN = "/sign-in"
"""Where a browser goes that signs in at a provider."""


class SessionBody(ResponseBody):
    """Who is signed in; `name` is null for nobody. `word` goes into X-Predrain-Word with whatever changes something.

    `reads`: whether this browser may look. `sign_in`: where people sign in elsewhere, if they can.
    """

    name: str | None
    scopes: list[Scope]
    word: str | None
    ends_at: datetime | None
    reads: bool
    sign_in: str | None


class SignInRequest(BaseModel):
    """A token of ours."""

    model_config = ConfigDict(extra="forbid")

    token: str = Field(min_length=1, max_length=500)


@router.get("/session", responses=declared(429))
def session(request: Request) -> SessionBody:
    """Who this browser is signed in as."""
    access = access_of(request)
    try:
        found = session_of(request)
    except CredentialEnded:
        found = None
    if found is None:
        return _body(access, may_read_unnamed(request))
    caller = found.caller
    return SessionBody(
        name=caller.name,
        scopes=sorted(caller.scopes),
        word=found.word,
        ends_at=found.ends_at,
        reads=caller.may(Scope.READ),
        sign_in=_elsewhere(access),
    )


@router.post("/session", status_code=204, response_class=Response, responses=declared(401, 403, 422, 429))
def sign_in(request: Request, wanted: SignInRequest) -> Response:
    """Sign this browser in with a token; the answer sets the cookie."""
    from_our_page(request)
    caller = holder(request, wanted.token)
    request.state.caller = caller
    return entered(request, caller, Response(status_code=204))


@router.delete("/session", status_code=204, response_class=Response, responses=declared(401, 403, 429))
def sign_out(request: Request) -> Response:
    """Sign out: the cookie opens nothing from now on."""
    caller = identify(request)
    if caller is None or session_of(request) is None:
        raise HttpProblem(401, "Nobody is signed in here.")
    access = access_of(request)
    access.sessions.sign_out(caller)
    answer = Response(status_code=204, headers={"Clear-Site-Data": '"cache"'})
    _set(request, answer, "", 0)
    return answer


def entered(request: Request, caller: Caller, answer: Response) -> Response:
    """`answer` with the cookie of a new session for `caller`; an old one of this browser is closed."""
    access = access_of(request)
    try:
        before = session_of(request)
    except CredentialEnded:
        before = None
    if before is not None:
        access.sessions.sign_out(before.caller)
    _set(request, answer, access.sessions.sign_in(caller), int(access.sessions.lasting.total_seconds()))
    return answer


def _set(request: Request, answer: Response, secret: str, seconds: int) -> None:
    access = access_of(request)
    answer.set_cookie(
        access.cookie(request),
        secret,
        max_age=seconds,
        path="/",
        secure=access.secure(request),
        httponly=True,
        samesite="strict",
    )


def _body(access: Access, reads: bool) -> SessionBody:
    return SessionBody(name=None, scopes=[], word=None, ends_at=None, reads=reads, sign_in=_elsewhere(access))


def _elsewhere(access: Access) -> str | None:
    return None if access.provider is None else SIGN_IN
