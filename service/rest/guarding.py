"""Who asks, and whether they may: a token in a header, a session's cookie with its word, or nobody at all."""

from __future__ import annotations

import hmac
import ipaddress
import urllib.parse
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from predrain.data.outside_text import CALLER, clean_identifier
from predrain.service.access.book import Book, CredentialEnded, CredentialKind
from predrain.service.access.limits import Buckets
from predrain.service.access.sessions import Session, Sessions
from predrain.service.requester import PERSON_HEADER, Requester, Surface
from predrain.service.rest import problems
from predrain.service.rest.caller_classes import OVER_BUDGET_STATE
from predrain.service.rest.door import LOOPBACK_NAMES, host_name, too_many
from predrain.service.rest.forwarding import is_forwarded
from predrain.service.tokens import TOKEN_FILE, Caller, Scope, Tokens

if TYPE_CHECKING:
    from predrain.service.access.oidc import Provider  # what it stands on is imported only where it is used

WORD_HEADER = "X-Predrain-Word"
"""What a page sends beside its cookie; `GET session` tells it."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK = Caller("loopback", frozenset({Scope.READ}))
IDENTITY_STATE = "identity"
"""Where a request's state keeps what was found out of its sender."""


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """Who sent a request (None: nobody), or why the credential that came with it is no good."""

    caller: Caller | None
    problem: problems.HttpProblem | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """What a request is judged by. `open_reads`: who comes from this machine reads without a token."""

    tokens: Tokens
    book: Book
    sessions: Sessions
    buckets: Buckets
    open_reads: bool
    address: str
    """Where people find the page; a proxy in front of it may speak TLS while we do not."""
    provider: Provider | None
    """Where people sign in elsewhere, if they can."""

    def secure(self, request: Request) -> bool:
        """Whether the browser came over TLS, ours or the proxy's."""
        proxied = self.address.lower() == f"https://{request.headers.get('host', '')}".lower()
        return request.url.scheme == "https" or proxied

    def cookie(self, request: Request) -> str:
        """The name of the session's cookie. Without TLS the port is in it: browsers share cookies between ports."""
        return "__Host-predrain" if self.secure(request) else f"predrain-{request.url.port or 80}"


def is_loopback(host: str) -> bool:
    """Whether an address or name can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def access_of(request: Request) -> Access:
    """The app's."""
    found: Access = request.app.state.access
    return found


def session_of(request: Request) -> Session | None:
    """The session whose cookie came, if it stands. Raises Ended."""
    access = access_of(request)
    secret = request.cookies.get(access.cookie(request))
    return access.sessions.of(secret) if secret else None


def identify(request: Request) -> Caller | None:
    """Who asks; None for nobody. Raises Problem for a token or cookie that is no good, or a forged request."""
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    if given:
        return holder(request, given.strip() if kind.lower() == "bearer" else "")
    try:
        session = session_of(request)
    except CredentialEnded as ended:
        raise _unknown(f"{str(ended)[:1].upper()}{str(ended)[1:]}.") from ended
    if session is None:
        return None
    request.state.caller = session.caller
    if request.method not in SAFE:
        from_our_page(request)
        if not hmac.compare_digest(request.headers.get(WORD_HEADER, "").encode(), session.word.encode()):
            raise problems.HttpProblem(
                403, f"A signed-in browser must send {WORD_HEADER} with what it asks; reload the page."
            )
    return session.caller


def from_our_page(request: Request) -> None:
    """Raises Problem where a browser says that another site's page is behind the request."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    foreign = site not in (None, "same-origin", "none")
    if origin is not None:
        foreign = foreign or origin.partition("://")[2].lower() != request.headers.get("host", "").lower()
    if foreign:
        raise problems.HttpProblem(
            403,
            f"The request came from a page of {origin or 'another site'}; nothing was done. Use our own page.",
        )


def needing(scope: Scope) -> Callable[[Request], Awaitable[Caller]]:
    """A dependency that lets a caller with `scope` pass; READ is open where only this machine can connect."""

    async def caller(request: Request) -> Caller:
        access = access_of(request)
        found = await _identified(request)
        if found is None:
            if scope is Scope.READ and may_read_unnamed(request):
                found = LOOPBACK
            else:
                file = access.tokens.path if _from_this_machine(request) else None
                which = "one" if file is None else f"the one in {file}"
                raise _unknown(
                    f"This needs a token: send {which} as Authorization: Bearer TOKEN, or sign in."
                )
        request.state.caller = found
        if wait := access.buckets.take((found.id or found.name, request.client and request.client.host)):
            setattr(request.state, OVER_BUDGET_STATE, found)
            raise too_many("one caller", "requests_per_second", wait)
        if not found.may(scope):
            held = ", ".join(sorted(found.scopes))
            raise problems.HttpProblem(
                403, f"This needs scope {scope}; the token of {found.name} has {held}."
            )
        return found

    return caller


async def _identified(request: Request) -> Caller | None:
    """As `identify`, from what was found out before the route where that is known."""
    known: RequestIdentity | None = getattr(request.state, IDENTITY_STATE, None)
    if known is None:
        named = "authorization" in request.headers or "cookie" in request.headers
        return await run_in_threadpool(identify, request) if named else None
    if known.problem is not None:
        raise known.problem
    return known.caller


def holder(request: Request, token: str) -> Caller:
    """Who holds `token`. Raises Problem for one that is no good."""
    access = access_of(request)
    found = access.tokens.caller(token)
    try:
        kept = access.book.credential(token) if found is None else None
    except CredentialEnded as ended:
        raise _unknown(f"{str(ended)[:1].upper()}{str(ended)[1:]}.") from ended
    # A session's secret is a cookie's and nothing else; a one-time token is good for one route only.
    if kept is not None and kept.kind is CredentialKind.TOKEN:
        found = kept.caller()
    elif found is not None and found.name == TOKEN_FILE:
        found = replace(found, name=_name_person(request) or found.name)
    if found is None:
        raise _unknown("The token is not known to this service; it may be of an earlier start.")
    return found


def _name_person(request: Request) -> str:
    """The person who typed the command that sent this, as journals name one; empty where none is said."""
    said = urllib.parse.unquote(request.headers.get(PERSON_HEADER, ""))
    person = clean_identifier(said, CALLER.limit)
    return Requester(Surface.COMMAND_LINE, person).name if person else ""


def may_read_unnamed(request: Request) -> bool:
    """Whether whoever sent this may look without a token: from this machine, where that is what is listened on."""
    return access_of(request).open_reads and _from_this_machine(request)


def reads_still(request: Request) -> bool:
    """Whether who sent this may look now: a stream may outlive the session or token that it began with."""
    try:
        found = identify(request)
    except problems.HttpProblem:
        return False
    return found.may(Scope.READ) if found is not None else may_read_unnamed(request)


def _from_this_machine(request: Request) -> bool:
    """Whether nobody stands between: a proxy here, named in the settings or not, would let in the whole network under
    our own address."""
    name, peer = host_name(request.headers.get("host", "")), request.client
    near = peer is None or is_loopback(peer.host)
    return near and name in LOOPBACK_NAMES and not is_forwarded(key for key, _ in request.headers.raw)


def _unknown(detail: str) -> problems.HttpProblem:
    return problems.HttpProblem(401, detail, headers={"WWW-Authenticate": 'Bearer realm="predrain"'})


Reader = Annotated[Caller, Depends(needing(Scope.READ))]
Ingester = Annotated[Caller, Depends(needing(Scope.INGEST))]
Handler = Annotated[Caller, Depends(needing(Scope.HAND))]
Actor = Annotated[Caller, Depends(needing(Scope.ACT))]
Admin = Annotated[Caller, Depends(needing(Scope.ADMIN))]
