"""`/healthz`, `/readyz`, `/activez`, `/metrics`: for monitoring of the service itself."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.metrics import build_metrics_response
from predrain.service.rest.problem_answers import HttpProblem, declare_problem_responses
from predrain.service.rest.service_state_answers import ServiceStateBody, service_state_body
from predrain.service.rest.shared_bodies import ResponseBody

router = APIRouter(tags=["health"])


class HealthBody(ResponseBody):
    """The state of the service (`status`) and of each of its parts."""

    status: str
    parts: dict[str, str]


@router.get("/healthz")
async def check_liveness(application: TheApplication) -> HealthBody:
    """Answer that the process runs, even while its threads wait, and name the parts of the service that run in it."""
    return HealthBody(status="ok", parts=application.parts.describe_roles())


@router.get("/readyz", responses=declare_problem_responses(503))
def check_readiness(application: TheApplication) -> HealthBody:
    """Answer 200 if the forecaster is loaded, the store answers and no loop is broken; otherwise 503."""
    parts = dict(application.faults)
    if not application.ready:
        parts.setdefault("worker", "loading the forecaster")
    if parts:
        broken = "; ".join(f"{part}: {why}" for part, why in sorted(parts.items()))
        raise HttpProblem(503, f"Not ready: {broken}", parts=parts)
    halted = application.find_halt_reason() or "no"
    return HealthBody(status="ready", parts={"halted": halted, "service": str(application.service_state)})


@router.get("/activez", responses=declare_problem_responses(503))
def check_active(application: TheApplication) -> ServiceStateBody:
    """Answer 200 if this service is the active one of those that share the store, or is alone; otherwise 503.

    A load balancer sends readings where this answers 200. Pages and reads may go to any service.
    """
    application.require_active()
    return service_state_body(application)


@router.get("/metrics", response_class=Response)
def serve_metrics(application: TheApplication) -> Response:
    """Prometheus text format."""
    return build_metrics_response(application)
