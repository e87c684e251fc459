"""Requests that act, sent twice: who names a request by an Idempotency-Key has it carried out once and answered twice.

Answers are kept where drains are, so that a service that was started anew, or another one on the same store, gives them
too. Only what was carried out is kept: a refusal changed nothing, and the repeat is judged anew. Killed between act and
answer, nothing is kept; a repeat then meets what the act left (a drain that stands is not proposed a second time).
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
from predrain.service.application import House
from predrain.service.rest.guarding import Actor
from predrain.service.rest.problems import HttpProblem
from predrain.service.rest.within import kept

ROOM = "answers"
KEPT_FOR = timedelta(hours=24)
MOST = 1_000
"""Answers that are kept; the oldest goes first."""


class _Answer(msgspec.Struct, frozen=True):
    at: datetime
    asked: str
    """What was asked, as a digest."""
    status: int
    body: str


_ANSWER = msgspec.json.Decoder(_Answer)


class RepeatedRequests:
    """What was answered to requests that had a key. Thread-safe."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._lock = threading.Lock()
        self._under_way: set[str] = set()

    def once(self, name: str, asked: str, act: Callable[[], tuple[int, str]]) -> tuple[int, str]:
        """What `act` answers, or answered when `name` was first asked for.

        Raises Problem where that was another request (422) or is still being carried out (409), and what `act` raises.
        """
        with self._alone(name):
            now, store = self._house.clock.now(), self._house.store
            found = {known: _ANSWER.decode(raw) for known, raw in store.notes(ROOM).items()}
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
                store.note(ROOM, dict.fromkeys(gone) | {name: answer})
            except (Refusal, OSError) as error:  # it is done all the same, and that is what is answered
                structlog.get_logger().error("an answer is not kept for its key", why=str(error))
            return status, body

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        with self._lock:
            first = name not in self._under_way
            self._under_way.add(name)
        if not first:
            raise _under_way()
        try:
            with self._house.store.alone(f"{ROOM}:{name}") as mine:
                if not mine:
                    raise _under_way()
                yield
        finally:
            with self._lock:
                self._under_way.discard(name)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that acts, with the name that its sender gave it, if any."""

    answers: RepeatedRequests
    name: str | None
    asked: str

    def answer(self, act: Callable[[], BaseModel | None], status: int = 200) -> Response:
        """What `act` makes, as JSON; carried out once where the request has a name."""

        def acted() -> tuple[int, str]:
            body = act()
            return status, body.model_dump_json(by_alias=True) if body is not None else ""

        found, text = self.answers.once(self.name, self.asked, acted) if self.name else acted()
        return Response(text, found, media_type="application/json") if text else Response(status_code=found)


async def _asked(
    request: Request,
    caller: Actor,
    answers: Annotated[RepeatedRequests, Depends(kept("answers", RepeatedRequests))],
    idempotency_key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=255,
            description="A name for this request, unique for a day: sent again with it, it is carried out once.",
        ),
    ] = None,
) -> Asked:
    if idempotency_key is None:
        return Asked(answers, None, "")
    condition = request.headers.get("if-match", "")
    asked = (request.method, request.url.path, condition, (await request.body()).decode(errors="replace"))
    return Asked(answers, _digest(caller.name, caller.id or "", idempotency_key), _digest(*asked))


def _digest(*parts: str) -> str:
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()


def _under_way() -> HttpProblem:
    return HttpProblem(
        409,
        "A request with this Idempotency-Key is being carried out; ask again when it is answered.",
        headers={"Retry-After": "1"},
    )


Once = Annotated[Asked, Depends(_asked)]
