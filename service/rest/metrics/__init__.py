"""What Prometheus sees: figures made at each scrape.

In: a house. Out: a registry of its metrics. No label is a device; which labels there are, and how many series they
make at the most, stands in the `catalogue`.
"""

from __future__ import annotations

from service.rest.metrics.catalogue import CATALOGUE
from service.rest.metrics.family import Family
from service.rest.metrics.service import registry_of

__all__ = ["CATALOGUE", "Family", "registry_of"]
