"""`POST latency`: where collectors without Kafka deliver what they counted of their OSDs."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from predrain.data.reading import LatencyBatch
from predrain.data.refusal import Refusal
from predrain.data.wire import decode
from predrain.service.application import House
from predrain.service.rest.guarding import Ingester
from predrain.service.rest.readings import TAKEN_IN, answer_delivery, items_of, own
from predrain.service.rest.within import TheHouse
from predrain.service.tokens import Caller

router = APIRouter(tags=["readings"])


@router.post("/latency", **TAKEN_IN)
async def latency(request: Request, house: TheHouse, caller: Ingester) -> Response:
    """An array of envelopes of schema `latency_batch`; 207 when a batch, or summaries of one, were refused."""
    body = await request.body()
    return await run_in_threadpool(_take, house, body, caller)


def _take(house: House, body: bytes, caller: Caller) -> Response:
    items = items_of(body, "latency batches")
    found: list[tuple[int, LatencyBatch]] = []
    refused: list[tuple[int, Refusal]] = []
    for index, item in enumerate(items):
        try:
            batch = decode(bytes(item), LatencyBatch).body
            for host in {batch.host, *(windows.host for windows in batch.windows)}:
                own(house, caller, host)
            found.append((index, batch))
        except Refusal as refusal:
            refused.append((index, refusal))
    told = house.latencies.ingest([batch for _, batch in found])
    refused += [(found[place][0], why) for place, why in told]
    return answer_delivery(len(items) - len({index for index, _ in refused}), refused)
