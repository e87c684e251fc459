"""All metrics of one process. What it says of itself needs no store and comes whatever else is broken."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from starlette.responses import Response

from predrain.data.refusal import Refusal
from predrain.service.application import House
from predrain.service.rest.metrics import catalogue as c
from predrain.service.rest.metrics.drains import drains
from predrain.service.rest.metrics.fleet import fleet
from predrain.service.rest.metrics.forecast import bundles, forecast
from predrain.service.rest.metrics.process import Process, itself


class ServiceMetricsCollector(Collector):
    """Made anew at each scrape, so that nothing is kept up to date that nobody looks at."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def collect(self) -> Iterator[Metric]:
        """Everything that is known now."""
        yield from itself(self._process)
        try:
            known = list(_of_the_store(self._process))
        except Refusal:
            yield c.STORE.one(0)
        else:
            yield c.STORE.one(1)
            yield from known


def _of_the_store(process: Process) -> Iterator[Metric]:
    """What cannot be told without it. Raises what the store raises."""
    now = process.clock.now()
    yield from bundles(process, now)
    if isinstance(process, House):  # a worker knows its share of the drives alone
        yield from _of_all(process, now)


def _of_all(house: House, now: datetime) -> Iterator[Metric]:
    sight = house.sight()
    yield from fleet(sight, now, house.stale_after)
    # A look that changed nothing makes no new sight; it is a look all the same.
    yield from drains(sight, house.fleet.view, now)
    yield c.HALTED.one(float(house.halted() is not None))
    if house.has_cluster and house.parts.acts:
        yield c.RUNNING.one(float(house.controlling() == "running"))
        yield c.REFUSING.by(house.control.refusing())
    yield from forecast(house)


def registry_of(process: Process) -> CollectorRegistry:
    """A registry with this process in it, and what the kernel says of it."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ServiceMetricsCollector(process))
    ProcessCollector(registry=registry)
    return registry


def told(process: Process) -> Response:
    """Prometheus text format."""
    return Response(generate_latest(registry_of(process)), media_type=CONTENT_TYPE_LATEST)
