"""Metrics of every process of the service, which need neither the store nor any other part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Protocol

from prometheus_client.core import Metric

from predrain.data.clock import Clock
from predrain.data.store.store_port import Store
from predrain.service.app.roles import ServiceRoles
from predrain.service.forecasting.deployed_models import DeployedModels
from predrain.service.notifications.channel import Deliveries
from predrain.service.rest.metrics import metric_catalogue as c

PARTS = ("worker", "latency", "controller", "retention", "watch", "bundle", "scorebook", "telling")
COUNTED = {
    "accepted": c.ACCEPTED,
    "refused": c.REFUSED,
    "anonymous": c.ANONYMOUS,
    "worked": c.WORKED,
    "dead": c.DEAD,
    "alerts": c.ALERTS,
    "latencies": c.LATENCIES,
    "latencies_dead": c.LATENCIES_DEAD,
    "latencies_lost": c.LATENCIES_LOST,
}


class MeasuredProcess(Protocol):
    """An application or a worker, with the properties that need no fleet."""

    @property
    def clock(self) -> Clock:
        """Return the clock that measures ages."""
        ...

    @property
    def store(self) -> Store:
        """Return the store of the process."""
        ...

    @property
    def parts(self) -> ServiceRoles:
        """Return the roles of the process in the service."""
        ...

    @property
    def ready(self) -> bool:
        """Return whether the process can score, if scoring is its role."""
        ...

    @property
    def deployed_models(self) -> DeployedModels:
        """Return the models that score here."""
        ...

    @property
    def bundle_name(self) -> str | None:
        """Return the name of the bundle that scores, or None while none is known."""
        ...

    @property
    def faults(self) -> Mapping[str, str]:
        """Return the faults by loop."""
        ...

    @property
    def troubles(self) -> Mapping[str, str]:
        """Return the problems by part that do not stop the loops."""
        ...

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the counts since the start of the process, by names of `COUNTED` and others."""
        ...

    @property
    def waited(self) -> timedelta | None:
        """Return how long the last judged reading had waited, or None without one."""
        ...

    @property
    def deliveries(self) -> Mapping[str, Deliveries]:
        """Return the deliveries of each notification channel."""
        ...


def collect_process_metrics(process: MeasuredProcess) -> Iterator[Metric]:
    """Yield every series that needs no store. Raises nothing."""
    yield c.INFO.build_labelled_metric({version("predrain"): 1})
    if process.parts.scores:
        yield c.READY.build_single_metric(float(process.ready))
    broken = {**process.faults, **process.troubles}
    parts = dict.fromkeys((*PARTS, *process.deliveries, *broken))
    yield c.FAULT.build_labelled_metric({part: float(part in broken) for part in parts})
    if process.waited is not None:
        yield c.LAG.build_single_metric(process.waited.total_seconds())
    yield from _collect_delivery_metrics(process.deliveries, process.clock.now())
    for name, family in COUNTED.items():
        if name in process.counts:
            yield family.build_single_metric(process.counts[name])


def _collect_delivery_metrics(deliveries: Mapping[str, Deliveries], now: datetime) -> Iterator[Metric]:
    yield c.SENT.build_labelled_metric({channel: one.sent for channel, one in deliveries.items()})
    yield c.UNSENT.build_labelled_metric({channel: one.failed for channel, one in deliveries.items()})
    last = {channel: one.last for channel, one in deliveries.items() if one.last is not None}
    yield c.SENT_AGE.build_labelled_metric(
        {channel: (now - at).total_seconds() for channel, at in last.items()}
    )
