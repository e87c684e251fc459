"""A metric family: its name, its help text, its labels, and how many series the labels can make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

MOST: Final = 1000
"""The most series of a family. Hosts and models are named by collectors, and a sender may invent names."""
OTHER: Final = "other"
"""The label under which the remaining series are counted."""


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One family. Names follow Prometheus' conventions: base units at the end, `_total` for counters.

    Ages are exported and not times, because `predrain demo` runs on a clock of its own.
    """

    name: str
    told: str
    labels: tuple[str, ...] = ()
    bound: str = "1"
    """How many series there can be, in words."""
    counts: bool = False
    """A counter since the start of the process; else a gauge."""

    @property
    def series_name(self) -> str:
        """Return the name of the family's series."""
        return f"{self.name}_total" if self.counts else self.name

    def build_single_metric(self, value: float) -> Metric:
        """Return the family with its only series."""
        return self.build_metric([((), value)])

    def build_labelled_metric(self, values: Mapping[str, float]) -> Metric:
        """Return the family with one label and one series per key."""
        return self.build_metric(((key,), value) for key, value in values.items())

    def build_metric(self, values: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
        """Return the family with a series for each combination of labels."""
        made = (CounterMetricFamily if self.counts else GaugeMetricFamily)(
            self.name, self.told, labels=self.labels
        )
        for key, value in values:
            made.add_metric(key, value)
        return made
