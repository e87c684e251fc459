"""`/sign-in`: to the provider and back. The page's address, not the interface's: a person's browser goes there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from predrain.data.refusal import Refusal
from predrain.service.rest.guarding import access_of
from predrain.service.rest.problems import HttpProblem
from predrain.service.rest.session import SIGN_IN, entered

if TYPE_CHECKING:
    from predrain.service.access.oidc import Provider

RETURN = f"{SIGN_IN}/return"
MINUTES = 10
"""That a sign-in may take."""

router = APIRouter(include_in_schema=False)


@router.get(SIGN_IN)
def sign_in(request: Request, back: str = "/") -> Response:
    """Off to the provider."""
    provider = _provider(request)
    try:
        where, kept = provider.begin(back)
    except Refusal as refusal:
        raise HttpProblem(503, f"Nobody can sign in now: {refusal}.") from refusal
    answer = RedirectResponse(where, 303, {"Cache-Control": "no-store"})
    _keep(request, answer, kept, MINUTES * 60)
    return answer


@router.get(RETURN)
def returned(request: Request, state: str = "", code: str = "", error: str = "") -> Response:
    """Back from the provider, with a code or with its refusal."""
    from predrain.service.access.oidc import MayNothing

    provider = _provider(request)
    if error or not code:
        raise HttpProblem(
            403, f"The provider lets nobody in: {error[:200] or 'it sent no code'}. Go to / and try again."
        )
    try:
        caller, back = provider.end(request.cookies.get(_cookie(request), ""), state, code)
    except Refusal as refusal:
        if isinstance(refusal, MayNothing):
            request.state.caller = refusal.caller
        raise HttpProblem(403, f"Nobody was signed in: {refusal}.") from refusal
    request.state.caller = caller
    answer = entered(request, caller, RedirectResponse(back, 303, {"Cache-Control": "no-store"}))
    _keep(request, answer, "", 0)
    return answer


def _provider(request: Request) -> Provider:
    found = access_of(request).provider
    if found is None:
        raise HttpProblem(404, "People sign in with tokens here; [oidc] names no provider.")
    return found


def _cookie(request: Request) -> str:
    return f"{access_of(request).cookie(request)}-begun"


def _keep(request: Request, answer: Response, kept: str, seconds: int) -> None:
    # Lax: the browser comes back from another site, and must bring it.
    answer.set_cookie(
        _cookie(request),
        kept,
        max_age=seconds,
        path="/",
        secure=access_of(request).secure(request),
        httponly=True,
        samesite="lax",
    )
