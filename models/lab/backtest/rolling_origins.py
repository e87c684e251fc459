"""Rolling origins: the data known by a split day forecasts the days after it. Each day is judged once.

 known by the split | embargo | first landmark ... judged ... last landmark | next origin's first landmark

Where windows overlap, a landmark belongs to the latest split that permits it, as it would in service.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from predrain.data.history import EPOCH
from predrain.models.evaluate.arrays import Ints


@dataclass(frozen=True, slots=True)
class Origin:
    """One split and the landmarks that it judges."""

    split: date
    """The last day whose data may be learned from."""
    first: date
    last: date
    """The landmarks are first, first + every, and so on up to this day."""
    every: int

    @property
    def landmarks(self) -> Ints:
        """Return the landmarks as days since 1970-01-01."""
        return np.arange((self.first - EPOCH).days, (self.last - EPOCH).days + 1, self.every, dtype=np.int64)

    @property
    def split_day(self) -> int:
        """Return the split as days since 1970-01-01."""
        return (self.split - EPOCH).days


def origins_of(
    start: date,
    end: date,
    *,
    splits: Sequence[date] = (),
    count: int = 1,
    judge_days: int = 60,
    embargo: int = 0,
    every: int = 7,
) -> list[Origin]:
    """Return the origins within a history from start to end; without splits, the last `count` that fit into its days.

    judge_days: days judged after the embargo. Splits with nothing to learn from or nothing to judge are left out.
    """
    wanted = sorted(set(splits)) or [
        end - timedelta(judge_days * number + embargo) for number in range(count, 0, -1)
    ]
    inside = [split for split in wanted if start <= split < end - timedelta(embargo)]
    first = [split + timedelta(1 + embargo) for split in inside]
    last = [min(day + timedelta(judge_days - 1), end) for day in first]
    for number, following in enumerate(first[1:]):
        last[number] = min(last[number], following - timedelta(1))
    return [Origin(*days, every) for days in zip(inside, first, last, strict=True)]
