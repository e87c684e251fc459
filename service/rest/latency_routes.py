"""`POST latency`: collectors without Kafka deliver the latencies of their OSDs here."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from predrain.data.latency_windows import LatencyBatch
from predrain.data.refusal import Refusal
from predrain.data.wire import decode_envelope
from predrain.service.access.tokens import Caller
from predrain.service.app.application import Application
from predrain.service.rest.authentication import Ingester
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.reading_routes import TAKEN_IN, answer_delivery, items_of, require_own_host

router = APIRouter(tags=["readings"])


@router.post("/latency", **TAKEN_IN)
async def ingest_latency_batches(request: Request, application: TheApplication, caller: Ingester) -> Response:
    """Take an array of envelopes of schema `latency_batch`; 207 if a batch, or summaries of one, were refused."""
    body = await request.body()
    return await run_in_threadpool(_ingest_latency_body, application, body, caller)


def _ingest_latency_body(application: Application, body: bytes, caller: Caller) -> Response:
    items = items_of(body, "latency batches")
    found: list[tuple[int, LatencyBatch]] = []
    refused: list[tuple[int, Refusal]] = []
    for index, item in enumerate(items):
        try:
            batch = decode_envelope(bytes(item), LatencyBatch).body
            for host in {batch.host, *(windows.host for windows in batch.windows)}:
                require_own_host(application, caller, host)
            found.append((index, batch))
        except Refusal as refusal:
            refused.append((index, refusal))
    told = application.latencies.ingest([batch for _, batch in found])
    refused += [(found[place][0], why) for place, why in told]
    return answer_delivery(len(items) - len({index for index, _ in refused}), refused)
