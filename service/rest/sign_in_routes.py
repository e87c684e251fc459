"""`/sign-in`: to the provider and back. The address belongs to the page and not to the API, because a browser
opens it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from predrain.data.refusal import Refusal
from predrain.service.rest.authentication import access_of
from predrain.service.rest.problem_answers import HttpProblem
from predrain.service.rest.session_routes import SIGN_IN, start_browser_session

if TYPE_CHECKING:
    from predrain.service.access.oidc import OidcProvider

RETURN = f"{SIGN_IN}/return"
MINUTES = 10
"""The most minutes that a sign-in may take."""

router = APIRouter(include_in_schema=False)


@router.get(SIGN_IN)
def sign_in(request: Request, back: str = "/") -> Response:
    """Redirect the browser to the provider."""
    provider = _require_provider(request)
    try:
        where, kept = provider.begin_sign_in(back)
    except Refusal as refusal:
        raise HttpProblem(503, f"Nobody can sign in now: {refusal}.") from refusal
    answer = RedirectResponse(where, 303, {"Cache-Control": "no-store"})
    _set_sign_in_cookie(request, answer, kept, MINUTES * 60)
    return answer


@router.get(RETURN)
def complete_sign_in(request: Request, state: str = "", code: str = "", error: str = "") -> Response:
    """Complete the sign-in of a browser that comes back from the provider with a code or with its refusal."""
    from predrain.service.access.oidc import MayNothing

    provider = _require_provider(request)
    if error or not code:
        raise HttpProblem(
            403, f"The provider lets nobody in: {error[:200] or 'it sent no code'}. Go to / and try again."
        )
    try:
        caller, back = provider.finish_sign_in(
            request.cookies.get(_name_sign_in_cookie(request), ""), state, code
        )
    except Refusal as refusal:
        if isinstance(refusal, MayNothing):
            request.state.caller = refusal.caller
        raise HttpProblem(403, f"Nobody was signed in: {refusal}.") from refusal
    request.state.caller = caller
    answer = start_browser_session(
        request, caller, RedirectResponse(back, 303, {"Cache-Control": "no-store"})
    )
    _set_sign_in_cookie(request, answer, "", 0)
    return answer


def _require_provider(request: Request) -> OidcProvider:
    found = access_of(request).provider
    if found is None:
        raise HttpProblem(404, "People sign in with tokens here; [oidc] names no provider.")
    return found


def _name_sign_in_cookie(request: Request) -> str:
    return f"{access_of(request).name_session_cookie(request)}-begun"


def _set_sign_in_cookie(request: Request, answer: Response, kept: str, seconds: int) -> None:
    # Lax: the browser comes back from another site, and must send the cookie.
    answer.set_cookie(
        _name_sign_in_cookie(request),
        kept,
        max_age=seconds,
        path="/",
        secure=access_of(request).is_over_tls(request),
        httponly=True,
        samesite="lax",
    )
