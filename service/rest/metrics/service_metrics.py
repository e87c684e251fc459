"""All metrics of one process. Its metrics of itself need no store, and come even if everything else is broken.

`create_metrics` serves them alone, for a process that serves no other HTTP requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.data.drain import Drain, DrainState
from predrain.data.refusal import Refusal
from predrain.service.app.application import Application
from predrain.service.config.settings import Settings
from predrain.service.fleet.drain_timeline import RUNNING, sample_drain
from predrain.service.fleet.fleet import OVER, FleetSnapshot
from predrain.service.rest.forwarded_headers import ProxyForwarding
from predrain.service.rest.metrics import metric_catalogue as c
from predrain.service.rest.metrics.fleet_metrics import collect_fleet_metrics
from predrain.service.rest.metrics.forecast_metrics import collect_bundle_metrics, collect_forecast_metrics
from predrain.service.rest.metrics.process_metrics import MeasuredProcess, collect_process_metrics
from predrain.service.rest.request_head import RequestHeadFilter


def collect_drain_metrics(
    snapshot: FleetSnapshot, view: ClusterView | None, now: datetime
) -> Iterator[Metric]:
    """Yield every series about drains, and the known ones about the cluster."""
    states = Counter(drain.state for drain in snapshot.drains)
    yield c.DRAINS.build_labelled_metric({state.value: states[state] for state in DrainState})
    waiting = [drain for drain in snapshot.drains if drain.state not in OVER | {DrainState.PAUSED}]
    yield c.HELD.build_single_metric(sum(bool(drain.held_by) for drain in waiting))
    yield from _under_way([drain for drain in snapshot.drains if drain.state in RUNNING], view, now)
    if view is None:
        return
    yield c.OSDS.build_single_metric(len(view.osds))
    yield c.VIEW_AGE.build_single_metric((now - view.as_of).total_seconds())
    from predrain.actions.core.claimed_settings import describe_left  # imported late, as the controller is

    yield c.FAST_MAPS.build_single_metric(float(bool(describe_left(view, snapshot.drains, moving=True))))
    yield c.FAST_MAPS_LEFT.build_single_metric(float(bool(describe_left(view, snapshot.drains))))
    yield c.LATENCY_KNOWN.build_single_metric(len(view.latency_ratio))
    if view.latency_ratio:
        yield c.LATENCY_WORST.build_single_metric(max(view.latency_ratio.values()))


def _under_way(running: Sequence[Drain], view: ClusterView | None, now: datetime) -> Iterator[Metric]:
    progress = [drain.progress for drain in running]
    yield c.FLYING.build_single_metric(sum(one.in_flight for one in progress))
    yield c.PGS_LEFT.build_single_metric(sum(max(0, one.planned_pgs - one.moved_pgs) for one in progress))
    yield c.BYTES_LEFT.build_single_metric(
        sum(max(0, one.planned_bytes - one.moved_bytes) for one in progress)
    )
    yield c.BYTES_MOVED.build_single_metric(sum(one.moved_bytes for one in progress))
    if view is None or not running:
        return
    from predrain.actions.core.held_throttles import (
        explain_unreliable_throttle,  # late, as the controller is, so that a start without a cluster is faster
    )
    from predrain.actions.core.in_flight import at_work

    ratios = [
        ratio for drain in running if (ratio := sample_drain(drain, view, now).latency_ratio) is not None
    ]
    if ratios:
        yield c.DRAIN_LATENCY.build_single_metric(max(ratios))
    yield c.VERIFIED.build_single_metric(
        float(all(explain_unreliable_throttle(view, at_work(drain)) is None for drain in running))
    )


class ServiceMetricsCollector(Collector):
    """Computes all metrics at each scrape, so that no figure is updated that nobody reads."""

    def __init__(self, process: MeasuredProcess) -> None:
        self._process = process

    def collect(self) -> Iterator[Metric]:
        """Yield every metric that is known now."""
        yield from collect_process_metrics(self._process)
        if isinstance(self._process, Application):
            yield c.ACTIVE.build_single_metric(float(self._process.is_active))
        try:
            known = list(_of_the_store(self._process))
        except Refusal:
            yield c.STORE.build_single_metric(0)
        else:
            yield c.STORE.build_single_metric(1)
            yield from known


def _of_the_store(process: MeasuredProcess) -> Iterator[Metric]:
    """Yield the metrics that need the store. Raises what the store raises."""
    now = process.clock.now()
    yield from collect_bundle_metrics(process, now)
    if isinstance(process, Application):  # a worker knows only its share of the drives
        yield from _of_all(process, now)


def _of_all(application: Application, now: datetime) -> Iterator[Metric]:
    snapshot = application.get_snapshot()
    yield from collect_fleet_metrics(snapshot, now, application.stale_after)
    # A poll that changed nothing makes no new snapshot, but it updates the view.
    yield from collect_drain_metrics(snapshot, application.fleet.view, now)
    yield c.HALTED.build_single_metric(float(application.find_halt_reason() is not None))
    if application.has_cluster and application.parts.acts:
        yield c.RUNNING.build_single_metric(float(application.controls_cluster))
        yield c.REFUSING.build_labelled_metric(application.control.count_guard_refusals())
    yield from collect_forecast_metrics(application)


def registry_of(process: MeasuredProcess) -> CollectorRegistry:
    """Return a registry with this process and the kernel's figures about it."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ServiceMetricsCollector(process))
    ProcessCollector(registry=registry)
    return registry


def build_metrics_response(process: MeasuredProcess) -> Response:
    """Return the metrics in Prometheus' text format."""
    return Response(generate_latest(registry_of(process)), media_type=CONTENT_TYPE_LATEST)


def create_metrics(process: MeasuredProcess, settings: Settings) -> ASGIApp:
    """Return the app that serves the metrics of `process`: GET and HEAD without a token, behind the usual
    `RequestHeadFilter`.
    """

    def metrics(_: Request) -> Response:
        return build_metrics_response(process)

    service = settings.service
    door = RequestHeadFilter(
        Starlette(routes=[Route("/metrics", metrics, methods=["GET"])]),
        hosts=frozenset(name.lower() for name in (*service.allowed_hosts, service.host)),
        body_limit=0,
        tls=service.tls_certificate is not None,
        requests_per_second=settings.access.address_requests_per_second,
    )
    return ProxyForwarding(door, service.trusted_proxies)
