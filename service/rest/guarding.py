"""At the door: the Host header, the size of a body, the token and its scopes."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from service.rest import problems
from service.tokens import Caller, Scope, Tokens

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def is_loopback(host: str) -> bool:
    """Whether an address or name can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Door:
    """ASGI middleware: refuses foreign Host headers (DNS rebinding) and large bodies, adds headers."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], body_limit: int) -> None:
        self.app, self.hosts, self.body_limit = app, hosts | LOOPBACK_NAMES, body_limit

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *HEADERS]}
            await send(message)

        name = _host_name(headers.get(b"host", b"").decode("latin-1"))
        if name not in self.hosts:
            refusal = problems.answer(
                400,
                f"The Host header names {name or 'nothing'!r}, which this service does not answer to; use "
                "http://127.0.0.1, or add the name to allowed_hosts of [service].",
            )
            await refusal(scope, receive, sending)
            return
        told = headers.get(b"content-length", b"0")
        if not told.isdigit() or int(told) > self.body_limit:
            await self._too_large()(scope, receive, sending)
            return
        taken = 0

        async def receiving() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.body_limit:
                raise self._too_large_problem()
            return message

        await self.app(scope, receiving, sending)

    def _detail(self) -> str:
        return f"The body is larger than {self.body_limit} bytes; send it in parts."

    def _too_large(self) -> ASGIApp:
        return problems.answer(413, self._detail())

    def _too_large_problem(self) -> problems.Problem:
        return problems.Problem(413, self._detail())


def _host_name(header: str) -> str:
    """The name in a Host header, without port and brackets, in lower case."""
    if header.startswith("["):
        return header[1:].split("]")[0].lower()
    return header.rsplit(":", 1)[0].lower() if header.count(":") == 1 else header.lower()


def needing(scope: Scope) -> Callable[[Request], Caller]:
    """A dependency that lets a caller with `scope` pass; READ is open where only this machine can connect."""

    def caller(request: Request) -> Caller:
        tokens: Tokens = request.app.state.tokens
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if not given:
            if scope is Scope.READ and request.app.state.open_reads:
                return Caller("loopback", frozenset({Scope.READ}))
            where = tokens.path or "the token file"
            raise problems.Problem(
                401,
                f"This needs the token in {where}: send it as Authorization: Bearer TOKEN.",
                headers={"WWW-Authenticate": 'Bearer realm="predrain"'},
            )
        found = tokens.caller(given.strip()) if kind.lower() == "bearer" else None
        if found is None:
            raise problems.Problem(
                401,
                "The token is not known to this service; it may be of an earlier start.",
                headers={"WWW-Authenticate": 'Bearer realm="predrain", error="invalid_token"'},
            )
        if not found.may(scope):
            held = ", ".join(sorted(found.scopes))
            raise problems.Problem(403, f"This needs scope {scope}; the token of {found.name} has {held}.")
        return found

    return caller


Reader = Annotated[Caller, Depends(needing(Scope.READ))]
Ingester = Annotated[Caller, Depends(needing(Scope.INGEST))]
Actor = Annotated[Caller, Depends(needing(Scope.ACT))]
