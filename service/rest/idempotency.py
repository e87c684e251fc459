"""Idempotent requests: a request with an Idempotency-Key is carried out once, and a repeat gets the same answer.

Answers are in the store with the drains, so that a restarted service, or another one on the same store, returns them,
too. Only a request that was carried out has a stored answer: a refusal changed nothing, and its repeat is judged again.
If the process is killed between act and answer, no answer is stored. A repeat then meets the result of the act (an
existing drain is not proposed a second time).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
import structlog
from fastapi import Depends, Header, Request
from pydantic import BaseModel
from starlette.responses import Response

from predrain.data.refusal import Refusal
from predrain.service.app.application import Application
from predrain.service.rest.authentication import Actor
from predrain.service.rest.dependencies import create_singleton_dependency
from predrain.service.rest.problem_answers import HttpProblem

ROOM = "answers"
KEPT_FOR = timedelta(hours=24)
MOST = 1_000
"""The most stored answers; the oldest is dropped first."""


class _Answer(msgspec.Struct, frozen=True):
    at: datetime
    asked: str
    """The digest of the request."""
    status: int
    body: str


_ANSWER = msgspec.json.Decoder(_Answer)


class RepeatedRequests:
    """The stored answers to requests with a key. Thread-safe."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._under_way: set[str] = set()

    def carry_out_once(self, name: str, asked: str, act: Callable[[], tuple[int, str]]) -> tuple[int, str]:
        """Carry out `act` and return its status and body, or return the stored answer of the first request called
        `name`.

        Raises HttpProblem if the first was another request (422) or is still being carried out (409), and what `act`
        raises.
        """
        with self._alone(name):
            now, store = self._application.clock.now(), self._application.store
            found = {known: _ANSWER.decode(raw) for known, raw in store.read_notes(ROOM).items()}
            before = found.get(name)
            if before is not None and now - before.at < KEPT_FOR:
                if before.asked != asked:
                    raise HttpProblem(
                        422,
                        "This Idempotency-Key came with another request before; take a new one for this one.",
                    )
                return before.status, before.body
            status, body = act()
            oldest = sorted(found, key=lambda known: found[known].at)[: max(0, len(found) + 1 - MOST)]
            gone = {known for known, one in found.items() if now - one.at >= KEPT_FOR}.union(oldest)
            try:
                answer = msgspec.json.encode(_Answer(now, asked, status, body))
                store.write_notes(ROOM, dict.fromkeys(gone) | {name: answer})
            except (Refusal, OSError) as error:  # the act is done all the same, and the answer says so
                structlog.get_logger().error("an answer is not kept for its key", reason=str(error))
            return status, body

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        with self._lock:
            first = name not in self._under_way
            self._under_way.add(name)
        if not first:
            raise _under_way()
        try:
            with self._application.store.try_lock_task(f"{ROOM}:{name}") as mine:
                if not mine:
                    raise _under_way()
                yield
        finally:
            with self._lock:
                self._under_way.discard(name)


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """One request that changes something, with the name that its sender gave it, if any."""

    answers: RepeatedRequests
    name: str | None
    asked: str

    def respond_once(self, act: Callable[[], BaseModel | None], status: int = 200) -> Response:
        """Return the result of `act` as JSON. A request with a name is carried out once."""

        def acted() -> tuple[int, str]:
            body = act()
            return status, body.model_dump_json(by_alias=True) if body is not None else ""

        found, text = self.answers.carry_out_once(self.name, self.asked, acted) if self.name else acted()
        return Response(text, found, media_type="application/json") if text else Response(status_code=found)


async def _build_idempotent_request(
    request: Request,
    caller: Actor,
    answers: Annotated[RepeatedRequests, Depends(create_singleton_dependency("answers", RepeatedRequests))],
    idempotency_key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=255,
            description="A name for this request, unique for a day. A repeated request is carried out once.",
        ),
    ] = None,
) -> IdempotentRequest:
    if idempotency_key is None:
        return IdempotentRequest(answers, None, "")
    condition = request.headers.get("if-match", "")
    asked = (request.method, request.url.path, condition, (await request.body()).decode(errors="replace"))
    return IdempotentRequest(
        answers, _compute_digest(caller.name, caller.id or "", idempotency_key), _compute_digest(*asked)
    )


def _compute_digest(*parts: str) -> str:
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()


def _under_way() -> HttpProblem:
    return HttpProblem(
        409,
        "A request with this Idempotency-Key is being carried out; ask again when it is answered.",
        headers={"Retry-After": "1"},
    )


Once = Annotated[IdempotentRequest, Depends(_build_idempotent_request)]
