"""`/metrics` and nothing else, for a process that has no other business with HTTP: nothing can be asked of it there."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from predrain.service.rest.door import Door
from predrain.service.rest.forwarding import Forwarding
from predrain.service.rest.metrics.process import Process
from predrain.service.rest.metrics.service import told
from predrain.service.settings import Settings


def create_metrics(process: Process, settings: Settings) -> ASGIApp:
    """`process` for Prometheus: GET and HEAD, no token, at the door what is refused there everywhere."""

    def metrics(_: Request) -> Response:
        return told(process)

    service = settings.service
    door = Door(
        Starlette(routes=[Route("/metrics", metrics, methods=["GET"])]),
        hosts=frozenset(name.lower() for name in (*service.allowed_hosts, service.host)),
        body_limit=0,
        tls=service.tls_certificate is not None,
        requests_per_second=settings.access.address_requests_per_second,
    )
    return Forwarding(door, service.proxies)
