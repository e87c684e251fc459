"""What Prometheus sees: figures made at each scrape; no label is a device, so that series stay few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from data.drain import DrainState
from data.outlook import Status
from service.house import House
from service.rest.upkeep import upkeep
from service.tally import tally

PARTS = ("worker", "controller", "retention", "watch", "bundle", "scorebook")
COUNTED = {
    "accepted": "Readings accepted into the log by this process.",
    "refused": "Readings refused at the door.",
    "worked": "Records that the worker took from the log.",
    "dead": "Records that became dead letters.",
    "alerts": "Readings that led to an announcement.",
}


class HouseCollector(Collector):
    """All metrics of one house."""

    def __init__(self, house: House) -> None:
        self._house = house

    def collect(self) -> Iterator[Metric]:
        """Everything, from one sight."""
        house, now = self._house, self._house.clock.now()
        sight = house.sight()
        counted = tally(sight, now, house.stale_after)
        yield _by("predrain_devices", "Devices by the status of their outlook.", "status",
                  {status.value: counted.statuses.get(status, 0) for status in Status})  # fmt: skip
        states = Counter(drain.state for drain in sight.drains)
        yield _by("predrain_drains", "Drains by state.", "state", {s.value: states[s] for s in DrainState})
        if counted.expected_30d is not None:
            told = "Failures expected within 30 days."
            yield _one("predrain_expected_failures_30d", told, counted.expected_30d)
        newest = max((reading.taken_at for reading in sight.readings.values()), default=None)
        if newest is not None:
            age = (now - newest).total_seconds()
            yield _one("predrain_newest_reading_age_seconds", "Age of the newest reading.", age)
        stale = counted.total - counted.fresh
        yield _one("predrain_stale_devices", "Devices without a reading for two intervals.", stale)
        if sight.view is not None:
            age = (now - sight.view.as_of).total_seconds()
            yield _one("predrain_view_age_seconds", "Age of the last view of the cluster.", age)
            yield _one("predrain_osds", "OSDs in the cluster.", len(sight.view.osds))
        yield _one("predrain_halted", "1 while a halt stands.", float(house.store.halt_reason() is not None))
        yield _one("predrain_ready", "1 once the forecaster is loaded.", float(house.ready))
        broken = {**house.faults, **house.troubles}
        yield _by("predrain_fault", "1 while a part is broken.", "part",
                  {part: float(part in broken) for part in PARTS})  # fmt: skip
        yield from upkeep(house)
        for name, told in COUNTED.items():
            yield CounterMetricFamily(f"predrain_readings_{name}", told, value=house.counts[name])


def registry_of(house: House) -> CollectorRegistry:
    """A registry with this house alone in it."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(HouseCollector(house))
    return registry


def _one(name: str, told: str, value: float) -> Metric:
    return GaugeMetricFamily(name, told, value=value)


def _by(name: str, told: str, label: str, values: dict[str, float]) -> Metric:
    family = GaugeMetricFamily(name, told, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
