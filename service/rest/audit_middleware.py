"""Audits every request that changes something or signs a person in, refused ones too, before it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, MutableMapping

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from predrain.data.refusal import Refusal
from predrain.service.access.audit import NOBODY, Audit, AuditedCall
from predrain.service.access.canonical_requests import canonical_request
from predrain.service.access.tokens import Caller
from predrain.service.rest.caller_classes import OVER_BUDGET_STATE, CallerClass
from predrain.service.rest.halt_lane import ANSWER_SECONDS, CLASS_STATE, run_within

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
METHODS = SAFE | {"POST", "PUT", "PATCH", "DELETE"}
WINDOW_SECONDS = 60.0
"""The seconds after the first counted request. Then one line per caller summarizes all counted requests of that
time.
"""


class AuditMiddleware:
    """ASGI middleware below `prefix`, and at `entrance`, the address to which the provider sends a browser back.

    Deliveries (readings, latencies, the answers of the mgr executor and of hosts) come by the thousand and change
    nothing: the audit has only those whose sender was refused (401, 403). The end of a request about a disk has a line
    of its own. A known caller's requests that are refused for their size or number get one line a minute, because
    a caller could fill the audit with them. `counts["anonymous"]`: requests without a valid credential.
    """

    def __init__(
        self,
        app: ASGIApp,
        audit: Audit,
        counts: MutableMapping[str, int],
        prefix: str,
        entrance: str,
        paths: Iterable[str] = (),
    ) -> None:
        """paths: the paths of all routes below `prefix`, with their parameters in braces."""
        self.app, self.audit, self.counts, self.prefix, self.entrance = app, audit, counts, prefix, entrance
        self._paths = tuple((compile_path(path)[0], path) for path in dict.fromkeys(paths))
        self._window: asyncio.Task[None] | None = None

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Pass on one request and audit it, or the app's start and end."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, self._flushing(send))
            return
        if scope["type"] != "http" or not self._matters(scope["method"], scope["path"]):
            await self.app(scope, receive, send)
            return
        noun = scope["path"].removeprefix(self.prefix).strip("/").split("/")[0]
        delivers = noun in ("readings", "latency", "executor", "disk-requests")
        said = bytearray()

        async def receiving() -> Message:
            message = await receive()
            if not delivers:
                said.extend(message.get("body", b""))
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                if not delivers or status in (401, 403):
                    await self._record(scope, bytes(said), status)
            await send(message)

        try:
            await self.app(scope, receiving, sending)
        except Exception:
            if not delivers:
                await self._record(scope, bytes(said), 500)
            raise

    def _matters(self, method: str, path: str) -> bool:
        return path == self.entrance if method in SAFE else path.startswith(self.prefix)

    async def _record(self, scope: AsgiScope, said: bytes, status: int) -> None:
        state = scope.get("state", {})
        caller: Caller | None = state.get("caller")
        over_budget: Caller | None = state.get(OVER_BUDGET_STATE)
        client = scope.get("client")
        address = client[0] if client else "unknown"
        if over_budget is not None or caller is None:  # no sender may write lines of the audit at will
            name = NOBODY if over_budget is None else over_budget.name
            if over_budget is None:
                self.counts["anonymous"] += 1
            if self.audit.count_refused(address, f"{self._route(scope)} {status}", name):
                self._window = asyncio.create_task(self._flush_later())
            return
        line = (scope, said, caller.name, address, status)
        if scope["state"].get(CLASS_STATE) is CallerClass.HALT:
            await run_within(
                scope, ANSWER_SECONDS, self._write, *line
            )  # the line of a halt may come after its answer
        else:
            await run_in_threadpool(self._write, *line)

    def _route(self, scope: AsgiScope) -> str:
        """Return method and route as the app knows them, without any text that the sender chose."""
        method = scope["method"] if scope["method"] in METHODS else "other method"
        path = getattr(scope.get("route"), "path", None) or self._find_path(scope["path"])
        if path == self.entrance or path is None:
            return f"{method} {path or 'at no route'}"
        return f"{method} {path if path.startswith(self.prefix) else self.prefix + path}"

    def _find_path(self, asked: str) -> str | None:
        """Return the path of the requested route, for a request that was refused before routing."""
        return next((path for pattern, path in self._paths if pattern.match(asked)), None)

    def _write(self, scope: AsgiScope, said: bytes, caller: str, address: str, status: int) -> None:
        headers = dict(scope["headers"])
        asked = canonical_request(
            scope["method"],
            scope["path"],
            b""
            if scope["path"] == self.entrance
            else scope["query_string"],  # it holds the provider's code, a secret
            said,
            headers.get(b"if-match", b"").decode("latin-1"),
        )
        try:
            self.audit.write(AuditedCall(caller, address, asked, str(status)))
        except (Refusal, OSError) as error:
            # The request is carried out already: the failure is logged.
            structlog.get_logger().error(
                "a call is not on record", asked=asked, caller=caller, reason=str(error)
            )

    async def _flush_later(self) -> None:
        await asyncio.sleep(WINDOW_SECONDS)
        await run_in_threadpool(self._flush)

    def _flush(self) -> None:
        try:
            self.audit.flush()
        except (Refusal, OSError) as error:
            structlog.get_logger().error("refused requests are not on record", reason=str(error))

    def _flushing(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "lifespan.shutdown.complete":
                if self._window is not None:
                    self._window.cancel()
                await run_in_threadpool(self._flush)
            await send(message)

        return sending
