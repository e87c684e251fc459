"""Operations by duration, as an OSD counts them, and the quantiles of these counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts since the OSD started. Both tuples have one entry for each bucket."""

    edges_ms: tuple[float, ...]
    """The lower edge of each bucket, ascending. A bucket ends where the next begins; the last one has no end."""
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """The number of operations in all buckets."""
        return sum(self.counts)

    def plus(self, other: Histogram) -> Histogram | None:
        """Return the sum of both, or None if their buckets differ."""
        return self._each(other, 1)

    def since(self, before: Histogram) -> Histogram | None:
        """Return the counts since `before`, or None if the counter was reset or the buckets differ."""
        grown = self._each(before, -1)
        return None if grown is None or min(grown.counts, default=0) < 0 else grown

    def quantile_ms(self, part: float) -> float | None:
        """Return the time that `part` (0 to 1) of the operations did not exceed, or None without operations.

        Operations are assumed to be spread evenly within a bucket. Ceph's buckets double, so a p50 is off by a factor
        of two at most, and the error of one OSD stays the same from window to window. Only the lower edge of the last
        bucket is known.
        """
        rank, below = part * self.total, 0
        for bucket, count in enumerate(self.counts):
            if count and below + count >= rank:
                low = self.edges_ms[bucket]
                high = self.edges_ms[bucket + 1] if bucket + 1 < len(self.edges_ms) else low
                return low + (high - low) * max(rank - below, 0.0) / count
            below += count
        return None

    def _each(self, other: Histogram, sign: int) -> Histogram | None:
        if self.edges_ms != other.edges_ms:
            return None
        counts = tuple(ours + sign * theirs for ours, theirs in zip(self.counts, other.counts, strict=True))
        return Histogram(self.edges_ms, counts)


def quantile_of_means(means: Sequence[tuple[float, int]], part: float) -> float | None:
    """Return the mean at or below which `part` of all operations lie, or None without operations.

    `means` holds (mean, operations) of stretches of time.
    """
    known = sorted((mean, count) for mean, count in means if count > 0)
    reached = list(accumulate(count for _, count in known))
    return next(
        (mean for (mean, _), so_far in zip(known, reached, strict=True) if so_far >= part * reached[-1]), None
    )
