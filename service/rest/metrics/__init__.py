"""The metrics for Prometheus, computed at each scrape.

The functions take an application, or a worker in its own process, and return its metrics as a registry or as an answer.
No label is a device. The `catalogue` lists the labels and the most series that they make.
"""

from __future__ import annotations

from predrain.service.rest.metrics.metric_catalogue import CATALOGUE
from predrain.service.rest.metrics.metric_family import MetricFamily
from predrain.service.rest.metrics.process_metrics import MeasuredProcess
from predrain.service.rest.metrics.service_metrics import build_metrics_response, create_metrics, registry_of

__all__ = [
    "CATALOGUE",
    "MeasuredProcess",
    "MetricFamily",
    "build_metrics_response",
    "create_metrics",
    "registry_of",
]
