"""Admission of every request before its route. It finds the class of the caller, and checks that the body is small and
shallow enough for that class, and that the class has a thread and memory for the request.

The whole body is read here, so that a route never waits for a slow client. It is counted while it arrives, so that a
refused body is never kept whole and never parsed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping

from anyio import CapacityLimiter, to_thread
from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from predrain.data.refusal import Refusal
from predrain.service.access.tokens import Caller, Scope
from predrain.service.rest import problem_answers
from predrain.service.rest.authentication import (
    IDENTITY_STATE,
    RequestIdentity,
    identify_caller,
    may_read_unnamed,
)
from predrain.service.rest.caller_classes import (
    OVER_BUDGET_STATE,
    PLACE_STATE,
    STREAMS_OF_ALL,
    STREAMS_OF_ONE,
    Budget,
    CallerClass,
    class_of,
)
from predrain.service.rest.halt_lane import CLASS_STATE, LANE_STATE, HaltLane
from predrain.service.rest.json_structure import StructureCounter

BODY_SECONDS = 60.0
"""The time for a whole body. At the default limit of 16 MiB that is 280 kB/s."""
QUEUE_SECONDS = 30.0
"""The time that a request may wait for a thread of its class."""
RETRY_SECONDS = 2
IDENTIFYING_THREADS = 3
"""Threads that only look up the holder of a token or cookie: a few reads of the store, which wait for no other
request.
"""
PROBES = frozenset({"/healthz", "/readyz", "/activez", "/metrics"})


class Admission:
    """ASGI middleware around the app's routes. One object serves one event loop."""

    body_seconds, queue_seconds = BODY_SECONDS, QUEUE_SECONDS

    def __init__(
        self, app: ASGIApp, *, budgets: Mapping[CallerClass, Budget], prefix: str, sign_in: str
    ) -> None:
        """prefix: the prefix of the API's addresses. sign_in: the prefix of the addresses for sign-in at a provider."""
        self.app, self._prefix, self._sign_in = app, prefix, sign_in
        self._deliveries = frozenset(
            {f"{prefix}/readings", f"{prefix}/latency", f"{prefix}/disk-requests/exchange"}
        )
        self._rooms = {kind: _Room(kind, budget) for kind, budget in budgets.items()}
        self._identifying = CapacityLimiter(IDENTIFYING_THREADS)
        self._streams: Counter[str] = Counter()
        # Two threads: while one waits for the store to accept a halt, the other identifies the caller of the
        # next halt.
        self._halters, self._halts = HaltLane(), HaltLane()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Admit one request and pass it to its route, or answer with the refusal."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        caller: Caller | None = None
        try:
            kind, caller = await self._classify(scope)
            if scope["method"] == "GET" and scope["path"] == f"{self._prefix}/events":
                await self._stream(scope, receive, send, kind, caller)
            else:
                await self._admit(scope, receive, send, kind)
        except _Refused as refused:
            if caller is not None:
                scope["state"][OVER_BUDGET_STATE] = caller
            await problem_answers.build_problem_response(
                refused.status, refused.detail, headers=refused.headers
            )(scope, receive, send)

    async def _classify(self, scope: AsgiScope) -> tuple[CallerClass, Caller | None]:
        """Return the request's class and its caller. The identity of the caller is stored for the route."""
        state, path, method = scope.setdefault("state", {}), scope["path"], scope["method"]
        request = Request(scope)
        halts = method == "POST" and path == f"{self._prefix}/halt"
        caller: Caller | None = None
        if path.startswith(f"{self._prefix}/"):
            if "authorization" in request.headers or "cookie" in request.headers:
                try:
                    if halts:
                        caller = await self._halters.run(identify_caller, request)
                    else:
                        caller = await to_thread.run_sync(identify_caller, request, limiter=self._identifying)
                    state[IDENTITY_STATE] = RequestIdentity(caller)
                except problem_answers.HttpProblem as problem:
                    state[IDENTITY_STATE] = RequestIdentity(None, problem)
                except Refusal:
                    pass  # the store does not answer: the route tries again, and answers with the problem
            if halts and caller is not None and caller.has_scope(Scope.ACT):
                kind = CallerClass.HALT
                state[LANE_STATE] = self._halts
            else:
                kind = class_of(caller, method, delivers=path in self._deliveries)
                if caller is None and kind is CallerClass.ANONYMOUS and may_read_unnamed(request):
                    kind = CallerClass.READER if method in ("GET", "HEAD") else kind
        elif path in PROBES:
            kind = CallerClass.PROBE
        elif path.startswith(self._sign_in):
            kind = CallerClass.SIGN_IN
        else:
            kind = CallerClass.ANONYMOUS
        state[CLASS_STATE] = kind
        return kind, caller

    async def _stream(
        self, scope: AsgiScope, receive: Receive, send: Send, kind: CallerClass, caller: Caller | None
    ) -> None:
        """Admit an event stream. It holds no thread, and counts from its begin to its end. Raises _Refused."""
        address = scope["client"][0] if scope.get("client") else ""
        key = f"{caller.id or caller.name}" if caller is not None else f"unnamed from {address}"
        if self._streams[key] >= STREAMS_OF_ONE:
            raise _Refused(
                429,
                f"This caller has {STREAMS_OF_ONE} event streams open, which is the most for one; close some of them.",
                headers={"Retry-After": "10"},
            )
        if self._streams.total() >= STREAMS_OF_ALL:
            raise _Refused(
                503,
                f"{STREAMS_OF_ALL} event streams are open, which is the most for this service; ask without events.",
                headers={"Retry-After": "30"},
            )
        self._streams[key] += 1
        try:
            await self._admit(scope, receive, send, kind)
        finally:
            self._streams[key] -= 1
            if not self._streams[key]:
                del self._streams[key]

    async def _admit(self, scope: AsgiScope, receive: Receive, send: Send, kind: CallerClass) -> None:
        """Read the body, and hold a thread's place until the answer begins. Raises _Refused."""
        room = self._rooms[kind]
        body = _IncomingBody(room, receive, self.body_seconds)
        place = ThreadPlace(room)
        try:
            content = await body.read(_collect_headers(scope))
            if content["type"] != "http.request":
                return  # its client disconnected, and needs no answer
            await place.take(self.queue_seconds)
            scope["state"][PLACE_STATE] = place
            replayed = False

            async def replay() -> Message:
                nonlocal replayed
                if replayed:  # the only further message is that the client disconnected
                    return await receive()
                replayed = True
                return content

            async def sending(message: Message) -> None:
                # An answer that has begun needs no thread: its client may read it at any speed.
                place.leave()
                await send(message)

            await self.app(scope, replay, sending)
        finally:
            place.leave()
            room.in_flight -= body.taken


class _Refused(problem_answers.HttpProblem):
    """A refusal by the admission itself. No part of an answer was sent yet."""


class _Room:
    """The present load of one class: its threads, waiting requests and bytes in flight."""

    def __init__(self, kind: CallerClass, budget: Budget) -> None:
        self.kind, self.budget = kind, budget
        self.threads = asyncio.Semaphore(budget.threads)
        self.waiting = 0
        self.in_flight = 0
        """The bytes of bodies in flight."""


class ThreadPlace:
    """One request's place among those that its class may carry out at once."""

    def __init__(self, room: _Room) -> None:
        self._room, self._taken = room, False

    async def take(self, seconds: float) -> None:
        """Wait for a place. Raises _Refused if too many requests wait already, or after so many seconds."""
        room = self._room
        if room.threads.locked() and room.waiting >= room.budget.waiting:
            raise _build_busy_refusal(room)
        room.waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await room.threads.acquire()
        except TimeoutError:
            raise _build_busy_refusal(room) from None
        finally:
            room.waiting -= 1
        self._taken = True

    async def wait_outside(self, turn: asyncio.Lock) -> None:
        """Wait for `turn` without the place, and take a place again. Raises _Refused; then the turn is released."""
        self.leave()
        await turn.acquire()
        try:
            await self.take(QUEUE_SECONDS)
        except BaseException:
            turn.release()
            raise

    def leave(self) -> None:
        """Release the place for the next request. A second call does nothing."""
        if self._taken:
            self._taken = False
            self._room.threads.release()


class _IncomingBody:
    """A request's body while it arrives, counted and timed. `taken`: bytes that count as in flight until the answer."""

    def __init__(self, room: _Room, receive: Receive, seconds: float) -> None:
        self._room, self._receive, self._seconds = room, receive, seconds
        self.taken = 0
        self._closing: Mapping[str, str] = {}
        """The extra headers of a refusal. The server skips the rest of a refused body with a declared length, so that
        its client reads the answer. A body without a length may have no end, so its connection is closed.
        """

    async def read(self, headers: Mapping[bytes, bytes]) -> Message:
        """Return the whole body as one message, or the message that the client disconnected. Raises _Refused."""
        budget = self._room.budget
        declared = headers.get(b"content-length")
        expected = int(declared) if declared else 0  # `RequestHeadFilter` has checked its form
        if declared is None:
            self._closing = {"Connection": "close"}
        if expected > budget.body_bytes:
            raise _too_large(budget.body_bytes)
        if self._room.in_flight + expected > budget.in_flight_bytes:
            raise _no_memory()
        counter = StructureCounter(budget.structure)
        deadline = asyncio.get_running_loop().time() + self._seconds
        pieces: list[bytes] = []
        more = True
        while more:
            try:
                async with asyncio.timeout_at(deadline):
                    message = await self._receive()
            except TimeoutError:
                raise _Refused(
                    408,
                    f"The body did not arrive within {self._seconds:g} s; send it in parts.",
                    headers={"Connection": "close"},
                ) from None
            if message["type"] != "http.request":
                return message
            piece: bytes = message.get("body", b"")
            more = message.get("more_body", False)
            self._count(piece, counter)
            pieces.append(piece)
        return {"type": "http.request", "body": b"".join(pieces), "more_body": False}

    def _count(self, piece: bytes, counter: StructureCounter) -> None:
        budget, room = self._room.budget, self._room
        if self.taken + len(piece) > budget.body_bytes:
            raise _too_large(budget.body_bytes, self._closing)
        if room.in_flight + len(piece) > budget.in_flight_bytes:
            raise _no_memory(self._closing)
        self.taken += len(piece)
        room.in_flight += len(piece)
        if excess := counter.feed(piece):
            cure = "send it in parts" if excess.divisible else "nothing of predrain's is like that"
            status = 413 if excess.divisible else 422
            raise _Refused(status, f"The body holds more than {excess.limit}; {cure}.", headers=self._closing)


def _collect_headers(scope: AsgiScope) -> dict[bytes, bytes]:
    return dict(scope["headers"])


def _too_large(limit: int, headers: Mapping[str, str] | None = None) -> _Refused:
    return _Refused(413, f"The body is larger than {limit} bytes; send it in parts.", headers=headers)


def _no_memory(headers: Mapping[str, str] | None = None) -> _Refused:
    return _Refused(
        429,
        "Too many bytes of requests are on their way at once, and nothing of this one was accepted; send it again "
        f"after {RETRY_SECONDS} s.",
        headers={"Retry-After": str(RETRY_SECONDS), **(headers or {})},
    )


def _build_busy_refusal(room: _Room) -> _Refused:
    return _Refused(
        503,
        f"All {room.budget.threads} places for requests of class {room.kind} are taken; ask again after "
        f"{RETRY_SECONDS} s.",
        headers={"Retry-After": str(RETRY_SECONDS)},
    )
