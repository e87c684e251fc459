"""Whether memory and descriptors of a process stayed flat, judged by samples over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression, median

LONGEST_WARM_UP_SECONDS = 240.0
WARM_UP_SHARE = 0.4
"""Part of a run in which caches fill, at most LONGEST_WARM_UP_SECONDS."""
MEMORY_BOUND = 0.5
"""Most megabytes by which memory may grow in a minute."""
DESCRIPTOR_BOUND = 5
"""Most descriptors that there may be more at the end than after the warm-up."""
MOST_WAITING = 5_000
"""Readings that may wait to be scored: ten seconds of the load."""
_ENDS = 10
"""Samples of which the median stands for the begin or the end."""


@dataclass(frozen=True, slots=True)
class ResourceSample:
    """The resources that a process held `at_seconds` after the load began."""

    at_seconds: float
    megabytes: float
    descriptors: int
    waiting: int
    """Readings that were accepted and not scored yet."""


@dataclass(frozen=True, slots=True)
class FlatnessVerdict:
    """The verdict on the samples after the warm-up."""

    warm_up_seconds: float
    megabytes_per_minute: float
    first_megabytes: float
    last_megabytes: float
    first_descriptors: int
    last_descriptors: int
    most_waiting: int

    @property
    def is_memory_flat(self) -> bool:
        """True if memory grew by no more than the bound. A process may give memory back."""
        return self.megabytes_per_minute <= MEMORY_BOUND

    @property
    def are_descriptors_flat(self) -> bool:
        """True if the number of descriptors grew by no more than the bound."""
        return self.last_descriptors - self.first_descriptors <= DESCRIPTOR_BOUND

    @property
    def has_kept_up(self) -> bool:
        """True if the service scored the readings as they came. If it did not, the load was too much for the machine,
        and another load than the intended one was measured."""
        return self.most_waiting <= MOST_WAITING

    @property
    def is_flat(self) -> bool:
        """True if memory and descriptors are flat, and the service kept up."""
        return self.is_memory_flat and self.are_descriptors_flat and self.has_kept_up


def judge_flatness(samples: Sequence[ResourceSample]) -> FlatnessVerdict:
    """Fit a line through the memory after the warm-up. Raises ValueError when there are too few samples."""
    whole = samples[-1].at_seconds if samples else 0.0
    warm_up = min(LONGEST_WARM_UP_SECONDS, WARM_UP_SHARE * whole)
    warm = [one for one in samples if one.at_seconds >= warm_up]
    if len(warm) < 2 * _ENDS:
        raise ValueError(f"{len(warm)} samples after the warm-up are too few to judge by; run for longer")
    slope = linear_regression([one.at_seconds for one in warm], [one.megabytes for one in warm]).slope
    first, last = warm[:_ENDS], warm[-_ENDS:]
    return FlatnessVerdict(
        warm_up_seconds=warm_up,
        megabytes_per_minute=60.0 * slope,
        first_megabytes=median(one.megabytes for one in first),
        last_megabytes=median(one.megabytes for one in last),
        first_descriptors=round(median(one.descriptors for one in first)),
        last_descriptors=round(median(one.descriptors for one in last)),
        most_waiting=max(one.waiting for one in warm),
    )
