"""`POST readings`: where collectors deliver. What is answered as accepted is in the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from predrain.data.ids import HostName
from predrain.data.reading import Reading, Unreadable
from predrain.data.refusal import Refusal
from predrain.data.residence import UNKNOWN_HOST
from predrain.data.unreadable import UnreadableCause
from predrain.data.wire import Ahead
from predrain.data.wire import decode as decode_envelope
from predrain.service.application import House
from predrain.service.rest.bodies import ResponseBody
from predrain.service.rest.guarding import Ingester
from predrain.service.rest.problems import HttpProblem, declared, shorten_text
from predrain.service.rest.within import TheHouse
from predrain.service.tokens import Caller, ForeignHost

router = APIRouter(tags=["readings"])
MOST_REASONS = 500
"""Refused items of one answer that come with their own reason; a collector sends no more at once. With all 10,000 items
that a body may hold, an answer stays below the 1 MiB that a collector reads."""
LONGEST_REASON = 300
"""Characters."""
NO_REASON = "Send it alone to read why."

ENROLLED_ANEW = 300.0
"""Seconds after which a host that came with another's token may have one of its own."""


class RefusedBody(ResponseBody):
    """A reading that was not accepted, by its place in the request, with the reason and the cure."""

    index: int
    reason: str
    retry_after: float | None
    """Seconds after which the same bytes may be taken: the fault is a clock's or the token's. Null: never."""

    @classmethod
    def of(cls, index: int, refusal: Refusal, *, told: bool = True) -> RefusedBody:
        """As its sender is told; without its own reason where not `told`."""
        again: float | None = None
        if isinstance(refusal, Ahead):
            again = refusal.seconds
        elif isinstance(refusal, ForeignHost):
            again = ENROLLED_ANEW
        reason = shorten_text(str(refusal), LONGEST_REASON) if told else NO_REASON
        return cls(index=index, reason=reason, retry_after=again)


class IngestedBody(ResponseBody):
    """How many were accepted; the others each with a reason."""

    accepted: int
    refused: list[RefusedBody]


def answer_delivery(accepted: int, refused: Iterable[tuple[int, Refusal]]) -> Response:
    """The answer to a delivery: 207 when some were refused. Made in the thread that took the delivery in, since it may
    be large."""
    listed = [
        RefusedBody.of(index, refusal, told=place < MOST_REASONS)
        for place, (index, refusal) in enumerate(sorted(refused, key=itemgetter(0)))
    ]
    body = IngestedBody(accepted=accepted, refused=listed).model_dump_json()
    return Response(body, 207 if listed else 200, media_type="application/json")


class NoIdentity(Refusal):
    """A document whose drive does not say who it is."""


class _Label(msgspec.Struct):
    """An envelope has both; smartctl's documents have neither."""

    schema: str | None = None
    version: int | None = None


TAKEN_IN: dict[str, Any] = {
    "response_model": IngestedBody,
    "responses": {
        207: {"model": IngestedBody, "description": "Some were refused."},
        **declared(401, 403, 413, 422, 503),
    },
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"type": "array", "items": {}}}},
        }
    },
}
"""How a route that takes an array of values, each accepted or refused by itself, is described."""


@router.post("/readings", **TAKEN_IN)
async def readings(
    request: Request,
    house: TheHouse,
    caller: Ingester,
    host: Annotated[
        str | None, Query(max_length=256, description="Host of smartctl documents, which do not name it.")
    ] = None,
) -> Response:
    """An array of envelopes of schema `reading`, or of smartctl's JSON; 207 when some were refused."""
    body = await request.body()
    return await run_in_threadpool(_take, house, body, host, caller)


def _take(house: House, body: bytes, host: str | None, caller: Caller) -> Response:
    # Python computes in one thread at a time: every further delivery that is read meanwhile takes its turns from the
    # worker, which then scores the less, the more collectors send at once.
    with house.taking_in:
        return _take_alone(house, body, host, caller)


def _take_alone(house: House, body: bytes, host: str | None, caller: Caller) -> Response:
    found: list[tuple[int, Reading]] = []
    refused: list[tuple[int, Refusal]] = []
    for index, item in enumerate(items_of(body, "readings")):
        try:
            reading = _reading(house, bytes(item), host)
            own(house, caller, reading.host)
            found.append((index, reading))
        except Refusal as refusal:
            refused.append((index, refusal))
    taken = house.ingest([reading for _, reading in found])
    refused += [(found[place][0], reason) for place, reason in taken.refused]
    house.counts["refused"] += len(refused) - len(taken.refused)
    return answer_delivery(taken.accepted, refused)


def own(house: House, caller: Caller, host: str) -> None:
    """Raises ForeignHost where the caller may deliver for another host only, which people are told of."""
    try:
        caller.speaks_for(host)
    except ForeignHost:
        house.misnamed.note(caller.host or "", host, house.clock.now())
        raise


def items_of(body: bytes, what: str) -> list[msgspec.Raw]:
    """What a body brings, to be judged one by one. Raises Problem."""
    try:
        return msgspec.json.decode(body, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HttpProblem(422, f"The body is no JSON array of {what}: {error}.") from error


def _reading(house: House, item: bytes, host: str | None) -> Reading:
    """One item as a reading. Raises data.wire.Poison, data.smart's Undecodable, NoIdentity."""
    now = house.clock.now()
    if _is_envelope(item):
        return replace(decode_envelope(item, Reading).body, received_at=now)
    # A tenth of the time of a start, which collectors' envelopes do without.
    from predrain.data.smart.document import Undecodable, decode

    document = decode(item, now)
    if document.untold is not None and document.standby:
        raise Undecodable(f"{document.untold}: ask again when it is awake", standby=True)
    if document.device_id is None:
        raise NoIdentity(
            "the document names no serial number, or a masked one, so the reading belongs to no device; "
            "send smartctl -x --json as it is"
        )
    known = house.fleet.reading(document.device_id)
    at = HostName(host) if host else (known.host if known else UNKNOWN_HOST)
    taken_at = document.taken_at or now
    if document.untold is None:
        return Reading(document.device_id, at, taken_at, now, document.smart)
    unread = Unreadable(taken_at, document.untold, UnreadableCause.IO_ERROR)
    return Reading(document.device_id, at, taken_at, now, unread)


def _is_envelope(item: bytes) -> bool:
    try:
        label = msgspec.json.decode(item, type=_Label)
    except msgspec.MsgspecError:
        return False
    return label.schema is not None or label.version is not None
