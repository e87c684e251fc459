"""`POST readings`: where collectors deliver. What is answered as accepted is in the log."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from data.ids import HostName
from data.reading import Reading, Unreadable
from data.refusal import Refusal
from data.wire import Ahead
from data.wire import decode as decode_envelope
from service.house import House
from service.rest.bodies import Body
from service.rest.guarding import Ingester
from service.rest.problems import Problem, declared
from service.rest.within import TheHouse
from service.tokens import Caller, ForeignHost

router = APIRouter(tags=["readings"])
UNKNOWN_HOST = HostName("unknown")
MOST_ITEMS = 10_000
"""Of one request. Each may be answered with a sentence: 16 MiB of `1,1,1` would be answered with a gigabyte."""


ENROLLED_ANEW = 300.0
"""Seconds after which a host that came with another's token may have one of its own."""


class RefusedBody(Body):
    """A reading that was not accepted, by its place in the request, with the reason and the cure."""

    index: int
    reason: str
    retry_after: float | None
    """Seconds after which the same bytes may be taken: the fault is a clock's or the token's. Null: never."""

    @classmethod
    def of(cls, index: int, refusal: Refusal) -> RefusedBody:
        """As its sender is told."""
        again: float | None = None
        if isinstance(refusal, Ahead):
            again = refusal.seconds
        elif isinstance(refusal, ForeignHost):
            again = ENROLLED_ANEW
        return cls(index=index, reason=str(refusal), retry_after=again)


class IngestedBody(Body):
    """How many were accepted; the others each with a reason."""

    accepted: int
    refused: list[RefusedBody]


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
    answer = await run_in_threadpool(_take, house, body, host, caller)
    return JSONResponse(answer.model_dump(), 207 if answer.refused else 200)


def _take(house: House, body: bytes, host: str | None, caller: Caller) -> IngestedBody:
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
    return IngestedBody(
        accepted=taken.accepted,
        refused=[RefusedBody.of(*one) for one in sorted(refused, key=itemgetter(0))],
    )


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
        items = msgspec.json.decode(body, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(422, f"The body is no JSON array of {what}: {error}.") from error
    if len(items) > MOST_ITEMS:
        raise Problem(413, f"The body brings more than {MOST_ITEMS:,} {what}; send them in parts.")
    return items


def _reading(house: House, item: bytes, host: str | None) -> Reading:
    """One item as a reading. Raises data.wire.Poison, data.smart's Undecodable, NoIdentity."""
    now = house.clock.now()
    if _is_envelope(item):
        return replace(decode_envelope(item, Reading).body, received_at=now)
    # A tenth of the time of a start, which collectors' envelopes do without.
    from data.smart.document import Undecodable, decode

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
    seen = document.smart if document.untold is None else Unreadable(taken_at, document.untold)
    return Reading(document.device_id, at, taken_at, now, seen)


def _is_envelope(item: bytes) -> bool:
    try:
        label = msgspec.json.decode(item, type=_Label)
    except msgspec.MsgspecError:
        return False
    return label.schema is not None or label.version is not None
