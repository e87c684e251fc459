"""Operations by how long they took, as an OSD counts them, and the quantiles of what it counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts since the OSD started. Both tuples have one entry a bucket."""

    edges_ms: tuple[float, ...]
    """Where each bucket begins, ascending; it ends where the next begins, the last one nowhere."""
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """Operations in all buckets."""
        return sum(self.counts)

    def plus(self, other: Histogram) -> Histogram | None:
        """Both together; None when their buckets differ."""
        return self._each(other, 1)

    def since(self, before: Histogram) -> Histogram | None:
        """What was counted since `before`; None when it cannot be so: the counter was reset, or its buckets differ."""
        grown = self._each(before, -1)
        return None if grown is None or min(grown.counts, default=0) < 0 else grown

    def quantile_ms(self, part: float) -> float | None:
        """The time that `part` (0 to 1) of the operations did not take longer than; None without operations.

        Within a bucket operations are taken to be spread evenly: Ceph's buckets double, so a p50 is at most a factor of
        two off, and one OSD keeps its error from window to window. Of the last bucket only the beginning is known.
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
    """The mean that `part` of all operations lie in or below. means: (mean, operations) of stretches of time.

    None without operations.
    """
    known = sorted((mean, count) for mean, count in means if count > 0)
    reached = list(accumulate(count for _, count in known))
    return next(
        (mean for (mean, _), so_far in zip(known, reached, strict=True) if so_far >= part * reached[-1]), None
    )
