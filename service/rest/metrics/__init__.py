"""What Prometheus sees: figures made at each scrape.

In: a house, or a worker that is a process of its own. Out: its metrics, as a registry or as an answer. No label is a
device; which labels there are, and how many series they make at the most, stands in the `catalogue`.
"""

from __future__ import annotations

from predrain.service.rest.metrics.alone import create_metrics
from predrain.service.rest.metrics.catalogue import CATALOGUE
from predrain.service.rest.metrics.family import MetricFamily
from predrain.service.rest.metrics.process import Process
from predrain.service.rest.metrics.service import registry_of, told

__all__ = ["CATALOGUE", "MetricFamily", "Process", "create_metrics", "registry_of", "told"]
