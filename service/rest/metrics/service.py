"""All metrics of one house. What the service says of itself needs no store and comes whatever else is broken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib.metadata import version

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from data.refusal import Refusal
from service.house import House
from service.rest.metrics import catalogue as c
from service.rest.metrics.drains import drains
from service.rest.metrics.fleet import fleet
from service.rest.metrics.forecast import forecast
from service.telling.channel import Deliveries

PARTS = ("worker", "latency", "controller", "retention", "watch", "bundle", "scorebook", "telling")
COUNTED = {
    "accepted": c.ACCEPTED,
    "refused": c.REFUSED,
    "worked": c.WORKED,
    "dead": c.DEAD,
    "alerts": c.ALERTS,
    "latencies": c.LATENCIES,
    "latencies_dead": c.LATENCIES_DEAD,
    "latencies_lost": c.LATENCIES_LOST,
}


class HouseCollector(Collector):
    """Made anew at each scrape, so that nothing is kept up to date that nobody looks at."""

    def __init__(self, house: House) -> None:
        self._house = house

    def collect(self) -> Iterator[Metric]:
        """Everything that is known now."""
        house = self._house
        yield c.INFO.by({version("predrain"): 1})
        if house.parts.scores:
            yield c.READY.one(float(house.ready))
        broken = {**house.faults, **house.troubles}
        parts = dict.fromkeys((*PARTS, *house.deliveries, *broken))
        yield c.FAULT.by({part: float(part in broken) for part in parts})
        if house.waited is not None:
            yield c.LAG.one(house.waited.total_seconds())
        yield from _messages(house.deliveries, house.clock.now())
        for name, family in COUNTED.items():
            yield family.one(house.counts[name])
        try:
            known = list(self._of_the_store())
        except Refusal:
            yield c.STORE.one(0)
        else:
            yield c.STORE.one(1)
            yield from known

    def _of_the_store(self) -> Iterator[Metric]:
        """What cannot be told without it. Raises what the store raises."""
        house, now = self._house, self._house.clock.now()
        sight = house.sight()
        yield from fleet(sight, now, house.stale_after)
        # A look that changed nothing makes no new sight; it is a look all the same.
        yield from drains(sight, house.fleet.view, now)
        yield c.HALTED.one(float(house.halted() is not None))
        if house.has_cluster and house.parts.acts:
            yield c.RUNNING.one(float(house.controlling() == "running"))
            yield c.REFUSING.by(house.control.refusing())
        yield from forecast(house, now)


def _messages(deliveries: Mapping[str, Deliveries], now: datetime) -> Iterator[Metric]:
    yield c.SENT.by({channel: one.sent for channel, one in deliveries.items()})
    yield c.UNSENT.by({channel: one.failed for channel, one in deliveries.items()})
    last = {channel: one.last for channel, one in deliveries.items() if one.last is not None}
    yield c.SENT_AGE.by({channel: (now - at).total_seconds() for channel, at in last.items()})


def registry_of(house: House) -> CollectorRegistry:
    """A registry with this house in it, and what the kernel says of the process."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(HouseCollector(house))
    ProcessCollector(registry=registry)
    return registry
