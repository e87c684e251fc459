"""What every process of the service says of itself, whatever it does and whatever else is broken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Protocol

from prometheus_client.core import Metric

from predrain.data.clock import Clock
from predrain.data.store.port import Store
from predrain.service.notifications.channel import Deliveries
from predrain.service.rest.metrics import catalogue as c
from predrain.service.roles import ServiceRoles
from predrain.service.scoring.deployed_models import Lineup

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


class Process(Protocol):
    """A house, or a worker: as much of either as can be told without the fleet."""

    @property
    def clock(self) -> Clock:
        """By which ages are told."""
        ...

    @property
    def store(self) -> Store:
        """What it stands on."""
        ...

    @property
    def parts(self) -> ServiceRoles:
        """What it does of the service."""
        ...

    @property
    def ready(self) -> bool:
        """Whether it can score, where it is to."""
        ...

    @property
    def lineup(self) -> Lineup:
        """Who scores here."""
        ...

    @property
    def bundle_name(self) -> str | None:
        """The bundle that scores; None while none is known."""
        ...

    @property
    def faults(self) -> Mapping[str, str]:
        """What is broken, by loop."""
        ...

    @property
    def troubles(self) -> Mapping[str, str]:
        """What is wrong, by part, while the loops turn all the same."""
        ...

    @property
    def counts(self) -> Mapping[str, int]:
        """What it did since its start, by names of `COUNTED` and others."""
        ...

    @property
    def waited(self) -> timedelta | None:
        """How long what was judged last had waited; None where nothing was."""
        ...

    @property
    def deliveries(self) -> Mapping[str, Deliveries]:
        """What each channel to people was given."""
        ...


def itself(process: Process) -> Iterator[Metric]:
    """Every series that needs no store. Raises nothing."""
    yield c.INFO.by({version("predrain"): 1})
    if process.parts.scores:
        yield c.READY.one(float(process.ready))
    broken = {**process.faults, **process.troubles}
    parts = dict.fromkeys((*PARTS, *process.deliveries, *broken))
    yield c.FAULT.by({part: float(part in broken) for part in parts})
    if process.waited is not None:
        yield c.LAG.one(process.waited.total_seconds())
    yield from _messages(process.deliveries, process.clock.now())
    for name, family in COUNTED.items():
        if name in process.counts:
            yield family.one(process.counts[name])


def _messages(deliveries: Mapping[str, Deliveries], now: datetime) -> Iterator[Metric]:
    yield c.SENT.by({channel: one.sent for channel, one in deliveries.items()})
    yield c.UNSENT.by({channel: one.failed for channel, one in deliveries.items()})
    last = {channel: one.last for channel, one in deliveries.items() if one.last is not None}
    yield c.SENT_AGE.by({channel: (now - at).total_seconds() for channel, at in last.items()})
