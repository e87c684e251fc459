"""The ratios of one period: each disk relative to the other disks of its host, and each host relative to the other
hosts.

A disk is compared bin by bin with the median of the *other* disks of its host (and device class). So everything
that slows all of them at once (load, a scrub, the time of day) cancels, and a slow disk does not raise its own
reference. The period's score is the median of its bins' ratios, which a few bad minutes do not move.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

IDLE_SHARE = 0.05
"""A bin in which a disk did less than this share of its peers' work is ignored."""
BINS_MIN = 3
"""Number of bins that a disk needs in a period to be judged at all."""


@dataclass(frozen=True, slots=True)
class ComparisonGroups:
    """Disks and the groups (hosts, by device class) in which they are compared. `group` and `slot`: (disks,)."""

    group: Ints
    slot: Ints

    @classmethod
    def from_groups(cls, group: Ints) -> ComparisonGroups:
        """Number the disks of each group."""
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group, minlength=int(group.max(initial=-1)) + 1)
        first = np.repeat(np.cumsum(sizes) - sizes, sizes)
        slot = np.empty(len(group), dtype=np.int64)
        slot[order] = np.arange(len(group)) - first
        return cls(group, slot)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of groups, and of the disks in the largest group."""
        return int(self.group.max(initial=-1)) + 1, int(self.slot.max(initial=-1)) + 1


@dataclass(frozen=True, slots=True)
class LatencyPeriod:
    """One period's natural logarithms of ratios; NaN where they are unknown.

    disk, cluster, peers, bins: (disks,) the ratio to the other disks of the host, the ratio to the other hosts'
    level, the number of other disks, and the number of bins in which the disk answered. host: (groups,) the ratio
    to the other hosts.
    """

    disk: Floats
    cluster: Floats
    peers: Ints
    bins: Ints
    host: Floats


def compute_period_ratios(
    roster: ComparisonGroups, disk: Ints, bin_: Ints, latency: Floats, load: Floats | None
) -> LatencyPeriod:
    """Compute the ratios of one period. disk, bin_, latency, load: (rows,), at most one row for each disk and bin.

    A latency that is not above 0 is no data. load: throughput or operations; None if unknown.
    """
    groups, slots = roster.shape
    bins = int(bin_.max(initial=-1)) + 1
    grid = np.full((groups, slots, bins), np.nan, dtype=np.float32)
    where = (roster.group[disk], roster.slot[disk], bin_)
    with np.errstate(divide="ignore", invalid="ignore"):
        grid[where] = np.where((latency > 0) & np.isfinite(latency), np.log(latency), np.nan)
    work: Floats | None = None
    if load is not None:
        work = np.full_like(grid, np.nan)
        work[where] = load
        _drop_idle(grid, work)
    ratio = grid - _median_of_others(grid, axis=1)
    if work is not None:
        ratio -= _excess_of_load(ratio, work)
    score = _compute_median(ratio, axis=2)
    score[np.isfinite(ratio).sum(axis=2) < BINS_MIN] = np.nan
    level = _compute_median(grid, axis=1)
    others = _median_of_others(level, axis=0)
    host = _compute_median(level - others, axis=1)
    host[np.isfinite(level).sum(axis=1) < BINS_MIN] = np.nan
    cluster = _compute_median(grid - others[:, None, :], axis=2)
    present = np.isfinite(grid).sum(axis=1)
    peers = np.maximum(
        _compute_median(np.where(present > 0, present, np.nan).astype(np.float32), axis=1) - 1, 0
    )
    at = (roster.group, roster.slot)
    answered = np.isfinite(grid).sum(axis=2)
    return LatencyPeriod(
        score[at], cluster[at], np.nan_to_num(peers)[roster.group].astype(np.int64), answered[at], host
    )


def _drop_idle(grid: Floats, work: Floats) -> None:
    """Remove, in place, the bins of disks that did almost nothing while their peers worked."""
    work[~np.isfinite(grid)] = np.nan
    usual = _compute_median(work, axis=1)[:, None, :]
    idle = work < IDLE_SHARE * usual
    grid[idle] = np.nan
    work[idle | ~(work > 0)] = np.nan


def _excess_of_load(ratio: Floats, work: Floats) -> Floats:
    """Compute the part of each ratio that is due to more work than the peers do.

    The slope is that of latency over load *within* each disk's period, over all disks, so that no disk's own level
    bends it. A disk that does less than its peers gets no correction, because a slow disk does less because it is
    slow.
    """
    busier = np.log(work) - _median_of_others(np.log(work), axis=1)
    known = np.isfinite(ratio) & np.isfinite(busier)
    x = np.where(known, np.clip(busier, -1, 1), np.nan)
    y = np.where(known, np.clip(ratio, -1, 1), np.nan)
    x, y = x - _compute_mean(x), y - _compute_mean(y)
    spread = float(np.nansum(x * x))
    slope = float(np.clip(np.nansum(x * y) / spread, 0.0, 1.0)) if spread > 0 else 0.0
    excess: Floats = np.nan_to_num(np.maximum(busier, 0.0) * np.float32(slope))
    return excess


def _compute_mean(values: Floats) -> Floats:
    known = np.isfinite(values)
    count = np.maximum(known.sum(axis=2, keepdims=True), 1)
    mean: Floats = np.where(known, values, 0).sum(axis=2, keepdims=True) / count
    return mean


def _compute_median(values: Floats, axis: int) -> Floats:
    """Return the median along `axis` without NaN, or NaN where nothing is left. (numpy's nanmedian is many times
    slower.)"""
    if not values.shape[axis]:
        return np.full(np.delete(values.shape, axis), np.nan, dtype=np.float32)
    ordered = np.sort(values, axis=axis)
    count = np.isfinite(ordered).sum(axis=axis, keepdims=True)
    low = np.take_along_axis(ordered, np.maximum(count - 1, 0) // 2, axis=axis)
    high = np.take_along_axis(ordered, np.minimum(count // 2, values.shape[axis] - 1), axis=axis)
    middle: Floats = np.where(count > 0, (low + high) / 2, np.float32(np.nan))
    return np.squeeze(middle, axis=axis)


def _median_of_others(values: Floats, axis: int) -> Floats:
    """Return, for each value along `axis`, the median of all others without NaN; NaN for a value that is alone or
    NaN."""
    ordered = np.sort(values, axis=axis)
    count = np.isfinite(ordered).sum(axis=axis, keepdims=True)
    others = count - 1
    last = values.shape[axis] - 1

    def other(rank: Ints) -> Floats:
        """Return the rank-th smallest of the others, which is one place later if the value itself comes before it."""
        at = np.take_along_axis(ordered, np.clip(rank, 0, last), axis=axis)
        after = np.take_along_axis(ordered, np.clip(rank + 1, 0, last), axis=axis)
        found: Floats = np.where(values <= at, after, at)
        return found

    middle = (other(np.maximum(others - 1, 0) // 2) + other(np.maximum(others, 0) // 2)) / 2
    result: Floats = np.where((others > 0) & np.isfinite(values), middle, np.float32(np.nan))
    return result
