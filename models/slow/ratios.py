"""One period: how slow each disk was beside the other disks of its host, and each host beside the other hosts.

A disk is compared bin by bin with the median of the *other* disks of its host (and device class): so what slows all of
them at once (load, a scrub, the time of day) cancels, and a disk does not vouch for itself. The period's score is the
median of its bins' ratios: a few bad minutes do not move it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

IDLE_SHARE = 0.05
"""A bin in which a disk did less than this share of its peers' work says nothing of it."""
BINS_MIN = 3
"""Bins that a disk needs in a period to be judged at all."""


@dataclass(frozen=True, slots=True)
class Roster:
    """Disks and the groups (hosts, by device class) that they are compared in. `group` and `slot`: (disks,)."""

    group: Ints
    slot: Ints

    @classmethod
    def of(cls, group: Ints) -> Roster:
        """Number the disks of each group."""
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group, minlength=int(group.max(initial=-1)) + 1)
        first = np.repeat(np.cumsum(sizes) - sizes, sizes)
        slot = np.empty(len(group), dtype=np.int64)
        slot[order] = np.arange(len(group)) - first
        return cls(group, slot)

    @property
    def shape(self) -> tuple[int, int]:
        """(groups, disks of the largest)."""
        return int(self.group.max(initial=-1)) + 1, int(self.slot.max(initial=-1)) + 1


@dataclass(frozen=True, slots=True)
class Period:
    """One period's natural logarithms of ratios; NaN where nothing can be said.

    disk, cluster, peers, bins: (disks,): against the other disks of the host, against the other hosts' level, how many
    other disks there were, and in how many bins the disk answered. host: (groups,): against the other hosts.
    """

    disk: Floats
    cluster: Floats
    peers: Ints
    bins: Ints
    host: Floats


def compared(roster: Roster, disk: Ints, bin_: Ints, latency: Floats, load: Floats | None) -> Period:
    """The ratios of one period. disk, bin_, latency, load: (rows,), at most one row a disk and bin.

    A latency that is not above 0 is no data. load (throughput or operations): None where it is not known.
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
    score = _median(ratio, axis=2)
    score[np.isfinite(ratio).sum(axis=2) < BINS_MIN] = np.nan
    level = _median(grid, axis=1)
    others = _median_of_others(level, axis=0)
    host = _median(level - others, axis=1)
    host[np.isfinite(level).sum(axis=1) < BINS_MIN] = np.nan
    cluster = _median(grid - others[:, None, :], axis=2)
    present = np.isfinite(grid).sum(axis=1)
    peers = np.maximum(_median(np.where(present > 0, present, np.nan).astype(np.float32), axis=1) - 1, 0)
    at = (roster.group, roster.slot)
    answered = np.isfinite(grid).sum(axis=2)
    return Period(
        score[at], cluster[at], np.nan_to_num(peers)[roster.group].astype(np.int64), answered[at], host
    )


def _drop_idle(grid: Floats, work: Floats) -> None:
    """Strike out, in place, bins of disks that did next to nothing while their peers worked."""
    work[~np.isfinite(grid)] = np.nan
    usual = _median(work, axis=1)[:, None, :]
    idle = work < IDLE_SHARE * usual
    grid[idle] = np.nan
    work[idle | ~(work > 0)] = np.nan


def _excess_of_load(ratio: Floats, work: Floats) -> Floats:
    """What of each ratio is owed to a disk's doing more than its peers, as latency follows load in this very period.

    The slope is that of latency over load *within* each disk's period, over all disks, so that no disk's own level
    bends it; a disk that does less than its peers is given nothing (a slow disk does less because it is slow).
    """
    busier = np.log(work) - _median_of_others(np.log(work), axis=1)
    known = np.isfinite(ratio) & np.isfinite(busier)
    x = np.where(known, np.clip(busier, -1, 1), np.nan)
    y = np.where(known, np.clip(ratio, -1, 1), np.nan)
    x, y = x - _mean(x), y - _mean(y)
    spread = float(np.nansum(x * x))
    slope = float(np.clip(np.nansum(x * y) / spread, 0.0, 1.0)) if spread > 0 else 0.0
    excess: Floats = np.nan_to_num(np.maximum(busier, 0.0) * np.float32(slope))
    return excess


def _mean(values: Floats) -> Floats:
    known = np.isfinite(values)
    count = np.maximum(known.sum(axis=2, keepdims=True), 1)
    mean: Floats = np.where(known, values, 0).sum(axis=2, keepdims=True) / count
    return mean


def _median(values: Floats, axis: int) -> Floats:
    """The median along `axis`, NaN left out; NaN where nothing is left. (numpy's nanmedian is many times slower.)"""
    if not values.shape[axis]:
        return np.full(np.delete(values.shape, axis), np.nan, dtype=np.float32)
    ordered = np.sort(values, axis=axis)
    count = np.isfinite(ordered).sum(axis=axis, keepdims=True)
    low = np.take_along_axis(ordered, np.maximum(count - 1, 0) // 2, axis=axis)
    high = np.take_along_axis(ordered, np.minimum(count // 2, values.shape[axis] - 1), axis=axis)
    middle: Floats = np.where(count > 0, (low + high) / 2, np.float32(np.nan))
    return np.squeeze(middle, axis=axis)


def _median_of_others(values: Floats, axis: int) -> Floats:
    """For each value along `axis` the median of all others, NaN left out; NaN for a value that is alone or NaN."""
    ordered = np.sort(values, axis=axis)
    count = np.isfinite(ordered).sum(axis=axis, keepdims=True)
    others = count - 1
    last = values.shape[axis] - 1

    def other(rank: Ints) -> Floats:
        """The rank-th smallest of the others: one place on, once the value itself has been passed."""
        at = np.take_along_axis(ordered, np.clip(rank, 0, last), axis=axis)
        after = np.take_along_axis(ordered, np.clip(rank + 1, 0, last), axis=axis)
        found: Floats = np.where(values <= at, after, at)
        return found

    middle = (other(np.maximum(others - 1, 0) // 2) + other(np.maximum(others, 0) // 2)) / 2
    result: Floats = np.where((others > 0) & np.isfinite(values), middle, np.float32(np.nan))
    return result
