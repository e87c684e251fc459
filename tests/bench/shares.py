"""A share with its interval, as the benches print it."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.stats import binomtest


@dataclass(frozen=True)
class Share:
    """How many of how many, with the Wilson 95 % interval of the share."""

    group: str
    what: str
    hits: int
    of: int

    @property
    def interval(self) -> tuple[float, float]:
        """Of the share, in [0, 1]."""
        found = binomtest(self.hits, self.of).proportion_ci(0.95, method="wilson")
        return float(found.low), float(found.high)
