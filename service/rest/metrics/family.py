"""A metric family: its name, what it says, its one label, and how many series that label can make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

MOST: Final = 1000
"""Series of a family at the most: a host or a model is what a collector sends, and a sender may invent names."""
OTHER: Final = "other"
"""Under which label the rest is counted."""


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One family. Names follow Prometheus' conventions: base units at the end, `_total` for what only grows.

    Ages are exported and not times, since `predrain demo` runs on a clock of its own.
    """

    name: str
    told: str
    labels: tuple[str, ...] = ()
    bound: str = "1"
    """How many series there can be, in words."""
    counts: bool = False
    """A counter since the start of the process; else a gauge."""

    @property
    def exposed(self) -> str:
        """The name of its series."""
        return f"{self.name}_total" if self.counts else self.name

    def one(self, value: float) -> Metric:
        """The family with its only series."""
        return self.of([((), value)])

    def by(self, values: Mapping[str, float]) -> Metric:
        """The family with one label, a series a key."""
        return self.of(((key,), value) for key, value in values.items())

    def of(self, values: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
        """The family with a series for each combination of labels."""
        made = (CounterMetricFamily if self.counts else GaugeMetricFamily)(
            self.name, self.told, labels=self.labels
        )
        for key, value in values:
            made.add_metric(key, value)
        return made
