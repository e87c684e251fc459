"""`/healthz`, `/readyz`, `/metrics`: for those who watch the service itself."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from predrain.service.rest.bodies import ResponseBody
from predrain.service.rest.metrics import told
from predrain.service.rest.problems import HttpProblem, declared
from predrain.service.rest.within import TheHouse

router = APIRouter(tags=["health"])


class HealthBody(ResponseBody):
    """What holds and what does not, by part."""

    status: str
    parts: dict[str, str]


@router.get("/healthz")
async def healthz(house: TheHouse) -> HealthBody:
    """The process answers, whatever its threads wait for, and which parts of the service run in it."""
    return HealthBody(status="ok", parts=house.parts.told())


@router.get("/readyz", responses=declared(503))
def readyz(house: TheHouse) -> HealthBody:
    """The forecaster is loaded, the store answers and no loop is broken."""
    parts = dict(house.faults)
    if not house.ready:
        parts.setdefault("worker", "loading the forecaster")
    if parts:
        broken = "; ".join(f"{part}: {why}" for part, why in sorted(parts.items()))
        raise HttpProblem(503, f"Not ready: {broken}", parts=parts)
    return HealthBody(status="ready", parts={"halted": house.halted() or "no"})


@router.get("/metrics", response_class=Response)
def metrics(house: TheHouse) -> Response:
    """Prometheus text format."""
    return told(house)
