"""Writes down every request that acts or signs somebody in, refused ones too, before it is answered."""

from __future__ import annotations

import secrets

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from data.refusal import Refusal
from service.access.audit import NOBODY, Audit, Call
from service.tokens import Caller

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
MOST_ASKED = 500
"""Characters of a body that are kept."""


class Recording:
    """ASGI middleware below `prefix`, and at `entrance`, where a browser comes back from a provider.

    Deliveries (readings, latencies, the hand's answers) come by the thousand and act on nothing: of those only what is
    refused to its sender is written.
    """

    def __init__(self, app: ASGIApp, audit: Audit, prefix: str, entrance: str) -> None:
        self.app, self.audit, self.prefix, self.entrance = app, audit, prefix, entrance

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or not self._matters(scope["method"], scope["path"]):
            await self.app(scope, receive, send)
            return
        noun = scope["path"].removeprefix(self.prefix).strip("/").split("/")[0]
        delivers = noun in ("readings", "latency", "hand")
        secret = noun in ("session", "enrolment", "sign-in")
        said = bytearray()

        async def receiving() -> Message:
            message = await receive()
            if not (delivers or secret) and len(said) < MOST_ASKED:
                said.extend(message.get("body", b"")[:MOST_ASKED])
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                if not delivers or status in (401, 403):
                    await self._write(scope, bytes(said), str(status))
            await send(message)

        try:
            await self.app(scope, receiving, sending)
        except Exception:
            if not delivers:
                await self._write(scope, bytes(said), "500")
            raise

    def _matters(self, method: str, path: str) -> bool:
        return path == self.entrance if method in SAFE else path.startswith(self.prefix)

    async def _write(self, scope: AsgiScope, said: bytes, answered: str) -> None:
        caller: Caller | None = scope.get("state", {}).get("caller")
        client = scope.get("client")
        # Of who may not enter, only that they tried: their words are of no interest and may be anything.
        words = said.decode(errors="replace")[:MOST_ASKED] if caller is not None and said != b"{}" else ""
        call = Call(
            caller.name if caller is not None else NOBODY,
            client[0] if client else "unknown",
            f"{scope['method']} {scope['path'][:300]} {words}".strip(),
            answered,
            secrets.token_hex(4),
        )
        try:
            await run_in_threadpool(self.audit.write, call)
        except (Refusal, OSError) as error:
            # What was done is done: it is said where it can be.
            structlog.get_logger().error(
                "a call is not on record", asked=call.asked, caller=call.caller, why=str(error)
            )
