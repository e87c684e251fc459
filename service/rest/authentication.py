"""Authentication and authorization of a request: by a token in a header, a session's cookie with its anti-forgery word,
or without a credential.
"""

from __future__ import annotations

import hmac
import urllib.parse
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from predrain.data.outside_text import CALLER, clean_identifier
from predrain.service.access.credentials import CredentialBook, CredentialEnded, CredentialKind
from predrain.service.access.loopback import is_loopback
from predrain.service.access.rate_limits import TokenBuckets
from predrain.service.access.requester import PERSON_HEADER, Requester, RequestSurface
from predrain.service.access.sessions import Session, Sessions
from predrain.service.access.tokens import TOKEN_FILE, Caller, Scope, Tokens
from predrain.service.rest import problem_answers
from predrain.service.rest.caller_classes import OVER_BUDGET_STATE
from predrain.service.rest.forwarded_headers import is_forwarded
from predrain.service.rest.request_head import LOOPBACK_NAMES, host_name, too_many

if TYPE_CHECKING:
    from predrain.service.access.oidc import (
        OidcProvider,  # its dependencies are imported only if it is used
    )

CSRF_HEADER = "X-Predrain-CSRF-Token"
"""The header with the anti-forgery word, which a page sends besides its cookie; `GET session` returns the word."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK = Caller("loopback", frozenset({Scope.READ}))
IDENTITY_STATE = "identity"
"""The attribute of a request's state that holds the identity of its sender."""
COUNTED_STATE = "counted"
"""The attribute of a request's state that says that its sender's rate counts it already."""


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """The sender of a request (None: no credential), or the problem with the credential that came with it."""

    caller: Caller | None
    problem: problem_answers.HttpProblem | None = None


@dataclass(frozen=True, slots=True)
class RequestAccess:
    """All that authorization needs. `open_reads`: a request from this machine may read without a token."""

    tokens: Tokens
    book: CredentialBook
    sessions: Sessions
    buckets: TokenBuckets
    open_reads: bool
    address: str
    """The page's address for people; a proxy in front of it may speak TLS while the service does not."""
    provider: OidcProvider | None
    """The provider at which people sign in, if there is one."""

    def is_over_tls(self, request: Request) -> bool:
        """Return whether the browser came over TLS, ours or the proxy's."""
        proxied = self.address.lower() == f"https://{request.headers.get('host', '')}".lower()
        return request.url.scheme == "https" or proxied

    def name_session_cookie(self, request: Request) -> str:
        """Return the name of the session's cookie. Without TLS it has the port, because browsers share cookies between
        ports.
        """
        return "__Host-predrain" if self.is_over_tls(request) else f"predrain-{request.url.port or 80}"


def access_of(request: Request) -> RequestAccess:
    """Return the authorization settings of the app."""
    found: RequestAccess = request.app.state.access
    return found


def session_of(request: Request) -> Session | None:
    """Return the session whose cookie came, or None without one. Raises CredentialEnded."""
    access = access_of(request)
    secret = request.cookies.get(access.name_session_cookie(request))
    return access.sessions.find_session(secret) if secret else None


def identify_caller(request: Request) -> Caller | None:
    """Return the caller, or None without a credential. Raises HttpProblem for an invalid token or cookie, or a forged
    request.
    """
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    if given:
        return authenticate_token(request, given.strip() if kind.lower() == "bearer" else "")
    try:
        session = session_of(request)
    except CredentialEnded as ended:
        raise _build_unauthorized_problem(f"{str(ended)[:1].upper()}{str(ended)[1:]}.") from ended
    if session is None:
        return None
    request.state.caller = session.caller
    if request.method not in SAFE:
        from_our_page(request)
        if not hmac.compare_digest(request.headers.get(CSRF_HEADER, "").encode(), session.word.encode()):
            raise problem_answers.HttpProblem(
                403, f"A signed-in browser must send {CSRF_HEADER} with what it asks; reload the page."
            )
    return session.caller


def from_our_page(request: Request) -> None:
    """Refuse a request that another site's page caused, by the browser's headers. Raises HttpProblem."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    foreign = site not in (None, "same-origin", "none")
    if origin is not None:
        foreign = foreign or origin.partition("://")[2].lower() != request.headers.get("host", "").lower()
    if foreign:
        raise problem_answers.HttpProblem(
            403,
            f"The request came from a page of {origin or 'another site'}; nothing was done. Use our own page.",
        )


def require_scope(scope: Scope) -> Callable[[Request], Awaitable[Caller]]:
    """Return a dependency that requires `scope` of the caller. READ needs no token if only this machine can connect."""

    async def caller(request: Request) -> Caller:
        access = access_of(request)
        found = await _resolve_caller(request)
        if found is None:
            if scope is Scope.READ and may_read_unnamed(request):
                found = LOOPBACK
            else:
                file = access.tokens.path if _from_this_machine(request) else None
                which = "one" if file is None else f"the one in {file}"
                raise _build_unauthorized_problem(
                    f"This needs a token: send {which} as Authorization: Bearer TOKEN, or sign in."
                )
        request.state.caller = found
        # A path with the cluster requires a scope twice: for the cluster, and for the route.
        counted = getattr(request.state, COUNTED_STATE, False)
        setattr(request.state, COUNTED_STATE, True)
        sender = found.id or found.name, request.client and request.client.host
        if not counted and (wait := access.buckets.take_token(sender)):
            setattr(request.state, OVER_BUDGET_STATE, found)
            raise too_many("one caller", "requests_per_second", wait)
        if not found.has_scope(scope):
            held = ", ".join(sorted(found.scopes))
            raise problem_answers.HttpProblem(
                403, f"This needs scope {scope}; the token of {found.name} has {held}."
            )
        return found

    return caller


async def _resolve_caller(request: Request) -> Caller | None:
    """Return the caller as `identify_caller` does, or the identity that was found before routing. Raises
    HttpProblem.
    """
    known: RequestIdentity | None = getattr(request.state, IDENTITY_STATE, None)
    if known is None:
        named = "authorization" in request.headers or "cookie" in request.headers
        return await run_in_threadpool(identify_caller, request) if named else None
    if known.problem is not None:
        raise known.problem
    return known.caller


def authenticate_token(request: Request, token: str) -> Caller:
    """Return the caller that holds `token`. Raises HttpProblem for an invalid one."""
    access = access_of(request)
    found = access.tokens.find_caller(token)
    try:
        kept = access.book.find_credential(token) if found is None else None
    except CredentialEnded as ended:
        raise _build_unauthorized_problem(f"{str(ended)[:1].upper()}{str(ended)[1:]}.") from ended
    # A session's secret is valid only in a cookie, and a one-time token only for one route.
    if kept is not None and kept.kind is CredentialKind.TOKEN:
        found = kept.to_caller()
    elif found is not None and found.name == TOKEN_FILE:
        found = replace(found, name=_name_person(request) or found.name)
    if found is None:
        raise _build_unauthorized_problem(
            "The token is not known to this service; it may be of an earlier start."
        )
    return found


def _name_person(request: Request) -> str:
    """Return the person who typed the command that sent this request, as journals name one, or "" if the request names
    none.
    """
    said = urllib.parse.unquote(request.headers.get(PERSON_HEADER, ""))
    person = clean_identifier(said, CALLER.limit)
    return Requester(RequestSurface.COMMAND_LINE, person).name if person else ""


def may_read_unnamed(request: Request) -> bool:
    """Return whether the sender may read without a token: from this machine, if the service listens only on it."""
    return access_of(request).open_reads and _from_this_machine(request)


def reads_still(request: Request) -> bool:
    """Return whether the sender may read now: a stream may outlive the session or token that it began with."""
    try:
        found = identify_caller(request)
    except problem_answers.HttpProblem:
        return False
    return found.has_scope(Scope.READ) if found is not None else may_read_unnamed(request)


def _from_this_machine(request: Request) -> bool:
    """Return whether the request came directly from this machine.

    A proxy on this machine, named in the settings or not, would let in the whole network under our own address.
    """
    name, peer = host_name(request.headers.get("host", "")), request.client
    near = peer is None or is_loopback(peer.host)
    return near and name in LOOPBACK_NAMES and not is_forwarded(key for key, _ in request.headers.raw)


def _build_unauthorized_problem(detail: str) -> problem_answers.HttpProblem:
    return problem_answers.HttpProblem(401, detail, headers={"WWW-Authenticate": 'Bearer realm="predrain"'})


Reader = Annotated[Caller, Depends(require_scope(Scope.READ))]
Ingester = Annotated[Caller, Depends(require_scope(Scope.INGEST))]
Handler = Annotated[Caller, Depends(require_scope(Scope.EXECUTE))]
Actor = Annotated[Caller, Depends(require_scope(Scope.ACT))]
Admin = Annotated[Caller, Depends(require_scope(Scope.ADMIN))]
