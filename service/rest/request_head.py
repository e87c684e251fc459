"""Checks of a request's head before authentication: Host header, rate per address, form and length of the body."""

from __future__ import annotations

import math

from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from predrain.service.access.rate_limits import TokenBuckets
from predrain.service.rest import problem_answers

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
BURST_SECONDS = 10.0
LONGEST_LENGTH = 20
"""The most digits of a length, because Python refuses to parse thousands of digits."""
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
OVER_TLS = (b"strict-transport-security", b"max-age=31536000")


class RequestHeadFilter:
    """ASGI middleware. It refuses by the head of a request; bodies are read and bounded in service.rest.admission."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: frozenset[str],
        body_limit: int,
        *,
        tls: bool,
        requests_per_second: float,
    ) -> None:
        self.app, self.hosts, self.body_limit = app, hosts | LOOPBACK_NAMES, body_limit
        self.headers = (*HEADERS, OVER_TLS) if tls else HEADERS
        self.buckets = TokenBuckets(requests_per_second, requests_per_second * BURST_SECONDS)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it by its head."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *self.headers]}
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await _build_refusal_response(refusal)(scope, receive, sending)
            return
        await self.app(scope, receive, sending)

    def _refusal(self, scope: AsgiScope) -> problem_answers.HttpProblem | None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        name = host_name(headers.get(b"host", b"").decode("latin-1"))
        if name not in self.hosts:
            return problem_answers.HttpProblem(
                400,
                f"The Host header names {name or 'nothing'!r}, which this service does not answer to; use "
                "http://127.0.0.1, or add the name to allowed_hosts of [service].",
            )
        if wait := self.buckets.take_token(scope["client"][0] if scope.get("client") else None):
            return too_many("one address", "address_requests_per_second", wait)
        if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
            return problem_answers.HttpProblem(
                415, "Packed bodies are not taken, since a small one may be a huge one; send it as it is."
            )
        told = headers.get(b"content-length", b"0")
        if not told.isdigit() or len(told) > LONGEST_LENGTH or int(told) > self.body_limit:
            return problem_answers.HttpProblem(413, _too_large(self.body_limit))
        return None


def too_many(whose: str, key: str, wait: float) -> problem_answers.HttpProblem:
    """Return a 429 for too many requests of one caller or address. `key` of [access] is the limit, and after `wait`
    seconds a request is accepted again.
    """
    return problem_answers.HttpProblem(
        429,
        f"These are too many requests of {whose}: wait {wait:.1f} s, or raise {key} of [access].",
        headers={"Retry-After": str(math.ceil(wait))},
    )


def _build_refusal_response(problem: problem_answers.HttpProblem) -> ASGIApp:
    return problem_answers.build_problem_response(problem.status, problem.detail, headers=problem.headers)


def _too_large(limit: int) -> str:
    return f"The body is larger than {limit} bytes; send it in parts."


def host_name(header: str) -> str:
    """Return the name in a Host header, without port and brackets, in lower case."""
    if header.startswith("["):
        return header[1:].split("]")[0].lower()
    return header.rsplit(":", 1)[0].lower() if header.count(":") == 1 else header.lower()
