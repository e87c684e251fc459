"""`POST readings`: collectors deliver readings here. A reading that is answered as accepted is in the log."""

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
from predrain.data.wire import RefusedForTime, decode_envelope
from predrain.service.access.tokens import Caller, ForeignHost
from predrain.service.app.application import Application
from predrain.service.rest.authentication import Ingester
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.problem_answers import HttpProblem, declare_problem_responses, shorten_text
from predrain.service.rest.shared_bodies import ResponseBody

router = APIRouter(tags=["readings"])
MOST_REASONS = 500
"""The most refused items of one answer that have their own reason; a collector sends no more at once. With all 10,000
items that a body may hold, an answer stays below the 1 MiB that a collector reads.
"""
LONGEST_REASON = 300
"""The most characters of a reason."""
NO_REASON = "Send it alone to read why."

ENROLLED_ANEW = 300.0
"""The seconds after which a host that delivered with another host's token may have its own token."""


class RefusedBody(ResponseBody):
    """A reading that was not accepted, by its place in the request, with the reason and the cure."""

    index: int
    reason: str
    retry_after: float | None
    """Seconds after which the same bytes may be accepted, if the fault is a clock's or the token's. Null: never."""

    @classmethod
    def from_refusal(cls, index: int, refusal: Refusal, *, told: bool = True) -> RefusedBody:
        """Return the answer about a refused item, with its own reason if `told` is set."""
        again: float | None = None
        if isinstance(refusal, RefusedForTime):
            again = refusal.seconds
        elif isinstance(refusal, ForeignHost):
            again = ENROLLED_ANEW
        reason = shorten_text(str(refusal), LONGEST_REASON) if told else NO_REASON
        return cls(index=index, reason=reason, retry_after=again)


class IngestedBody(ResponseBody):
    """The number of accepted items, and each of the others with a reason."""

    accepted: int
    refused: list[RefusedBody]


def answer_delivery(accepted: int, refused: Iterable[tuple[int, Refusal]]) -> Response:
    """Return the answer to a delivery: 207 if some items were refused. The thread that ingested the delivery builds it,
    because it may be large.
    """
    listed = [
        RefusedBody.from_refusal(index, refusal, told=place < MOST_REASONS)
        for place, (index, refusal) in enumerate(sorted(refused, key=itemgetter(0)))
    ]
    body = IngestedBody(accepted=accepted, refused=listed).model_dump_json()
    return Response(body, 207 if listed else 200, media_type="application/json")


class NoIdentity(Refusal):
    """The document does not identify its drive."""


class _Label(msgspec.Struct):
    """The label of an item: an envelope has both fields, and smartctl's documents have neither."""

    schema: str | None = None
    version: int | None = None


TAKEN_IN: dict[str, Any] = {
    "response_model": IngestedBody,
    "responses": {
        207: {"model": IngestedBody, "description": "Some were refused."},
        **declare_problem_responses(401, 403, 413, 422, 503),
    },
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"type": "array", "items": {}}}},
        }
    },
}
"""The declaration of a route that receives an array of values, each accepted or refused by itself."""


@router.post("/readings", **TAKEN_IN)
async def ingest_readings(
    request: Request,
    application: TheApplication,
    caller: Ingester,
    host: Annotated[
        str | None, Query(max_length=256, description="Host of smartctl documents, which do not name it.")
    ] = None,
) -> Response:
    """Take an array of envelopes of schema `reading`, or of smartctl's JSON; 207 if some were refused."""
    body = await request.body()
    return await run_in_threadpool(_ingest_body_under_lock, application, body, host, caller)


def _ingest_body_under_lock(
    application: Application, body: bytes, host: str | None, caller: Caller
) -> Response:
    # Python computes in one thread at a time. Each further delivery that is parsed at once takes computing
    # time from the worker, which would score the less, the more collectors send at once.
    with application.taking_in:
        return _take_alone(application, body, host, caller)


def _take_alone(application: Application, body: bytes, host: str | None, caller: Caller) -> Response:
    found: list[tuple[int, Reading]] = []
    refused: list[tuple[int, Refusal]] = []
    for index, item in enumerate(items_of(body, "readings")):
        try:
            reading = _parse_reading(application, bytes(item), host)
            require_own_host(application, caller, reading.host)
            found.append((index, reading))
        except Refusal as refusal:
            refused.append((index, refusal))
    taken = application.ingest([reading for _, reading in found])
    refused += [(found[place][0], reason) for place, reason in taken.refused]
    application.counts["refused"] += len(refused) - len(taken.refused)
    return answer_delivery(taken.accepted, refused)


def require_own_host(application: Application, caller: Caller, host: str) -> None:
    """Check that the caller may deliver for `host`. Raises ForeignHost if not; then a cause notifies people of it."""
    try:
        caller.speaks_for(host)
    except ForeignHost:
        application.host_mismatches.record_mismatch(caller.host or "", host, application.clock.now())
        raise


def items_of(body: bytes, what: str) -> list[msgspec.Raw]:
    """Return the items of a body, undecoded, so that each is judged by itself. Raises HttpProblem."""
    try:
        return msgspec.json.decode(body, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HttpProblem(422, f"The body is no JSON array of {what}: {error}.") from error


def _parse_reading(application: Application, item: bytes, host: str | None) -> Reading:
    """Return one item as a reading. Raises data.wire.Poison, data.smart's Undecodable, NoIdentity."""
    now = application.clock.now()
    if _is_envelope(item):
        return replace(decode_envelope(item, Reading).body, received_at=now)
    # This import takes a tenth of the time of a start, and collectors' envelopes do not need it.
    from predrain.data.smart.smartctl_document import Undecodable, decode_smartctl_output

    document = decode_smartctl_output(item, now)
    if document.missing_state_reason is not None and document.standby:
        raise Undecodable(f"{document.missing_state_reason}: ask again when it is awake", standby=True)
    if document.device_id is None:
        raise NoIdentity(
            "the document names no serial number, or a masked one, so the reading belongs to no device; "
            "send smartctl -x --json as it is"
        )
    known = application.fleet.reading(document.device_id)
    at = HostName(host) if host else (known.host if known else UNKNOWN_HOST)
    taken_at = document.taken_at or now
    if document.missing_state_reason is None:
        return Reading(document.device_id, at, taken_at, now, document.smart)
    unread = Unreadable(taken_at, document.missing_state_reason, UnreadableCause.IO_ERROR)
    return Reading(document.device_id, at, taken_at, now, unread)


def _is_envelope(item: bytes) -> bool:
    try:
        label = msgspec.json.decode(item, type=_Label)
    except msgspec.MsgspecError:
        return False
    return label.schema is not None or label.version is not None
