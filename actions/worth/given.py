"""What is replayed: forecasts of drives, their fates, where they stand, and the notch at which they are flagged."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from data.refusal import Refusal

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

WINDOW_DAYS = 30
"""Length of a window in which a drive is flagged or not."""


class NothingToReplay(Refusal):
    """There is no forecast, or no drive to replay."""


@dataclass(frozen=True, slots=True)
class Notch:
    """Values of p_fail_30d from which on a drive is called warning and bad. `name` is for people."""

    name: str
    warning: float
    bad: float

    def times(self, factor: float, name: str) -> Notch:
        """Both values times `factor`."""
        return Notch(name, self.warning * factor, self.bad * factor)


@dataclass(frozen=True, slots=True)
class Forecasts:
    """p_fail_30d of every drive on every day."""

    first: int
    """Day of the first column, counted from 1970-01-01; the columns are consecutive days."""
    p_fail_30d: NDArray[np.float32]
    """(drives, days) in [0, 1], higher is worse; NaN on a day on which nothing is known of the drive."""

    @classmethod
    def spread(cls, drive: Ints, day: Ints, p_fail_30d: Floats, *, drives: int, every: int) -> Forecasts:
        """From rows (a drive and day each); a row stands for `every` days, or until the drive's next one.

        drive: (rows,) numbers below `drives`; day: (rows,) days since 1970-01-01; p_fail_30d: (rows,), NaN
        where the drive could not be judged. Raises NothingToReplay without rows.
        """
        if not len(drive):
            raise NothingToReplay(
                "there is no forecast to replay; score the days with `predrain score` first"
            )
        first, last = int(day.min()), int(day.max())
        p = np.full((drives, last - first + every), np.nan, dtype=np.float32)
        p[drive, day - first] = p_fail_30d
        asked = np.zeros(p.shape, dtype=bool)
        asked[drive, day - first] = True
        for column in range(1, p.shape[1]):
            recent = asked[:, max(0, column - every + 1) : column].any(axis=1)
            carried = recent & ~asked[:, column]
            p[carried, column] = p[carried, column - 1]
        return cls(first, p)

    @property
    def drives(self) -> int:
        """How many rows the table has."""
        return int(self.p_fail_30d.shape[0])

    @property
    def days(self) -> int:
        """How many days are forecast on."""
        return int(self.p_fail_30d.shape[1])

    def of(self, members: Ints) -> Forecasts:
        """The forecasts of some drives, in that order."""
        return replace(self, p_fail_30d=self.p_fail_30d[members])


@dataclass(frozen=True, slots=True)
class Fates:
    """What became of each drive (n). Days are counted from 1970-01-01."""

    devices: NDArray[np.object_]
    """(n,) names, each once."""
    models: NDArray[np.object_]
    first: Ints
    """(n,) first day in service."""
    last: Ints
    """(n,) day of death, or the last day on which it was seen alive."""
    died: NDArray[np.bool_]
    end: int
    """Last day of which anything is known; a drive with `last` before it that did not die was removed alive."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each drive (n) stands and what it holds."""

    cluster: Ints
    rack: Ints
    """(n,) Numbers of racks are of the whole, not of a cluster."""
    host: Ints
    used_bytes: Ints
    size_bytes: Ints


def laid_out(
    models: NDArray[np.object_],
    size_bytes: Ints,
    *,
    seed: int,
    drives_a_host: int = 45,
    hosts_a_rack: int = 4,
    racks_a_cluster: int = 5,
    fill: float = 0.69,
) -> Layout:
    """A made layout: hosts filled with drives of one model, as operators buy them, hosts shuffled over racks.

    models, size_bytes: (drives,). Chance is `seed`'s: which drives share a host and which hosts a rack.
    """
    chance = np.random.default_rng(seed)
    order = chance.permutation(len(models))
    order = order[np.argsort(models[order].astype(str), kind="stable")]
    hosts = -(-len(models) // drives_a_host)
    place = np.empty(len(models), dtype=np.int64)
    place[order] = np.arange(len(models)) // drives_a_host
    host = chance.permutation(hosts)[place].astype(np.int64)
    rack = host // hosts_a_rack
    used = (size_bytes * fill).astype(np.int64)
    return Layout(rack // racks_a_cluster, rack, host, used, size_bytes.astype(np.int64))


def threshold_at(share: float, forecasts: Forecasts, fates: Fates, horizon: int) -> float | None:
    """The p_fail_30d that `share` of the healthy windows reach; None when there is no such window.

    A healthy window is a drive and 30 days from the first forecast on, all of them in service and alive for
    `horizon` days more, or to the end of the data.
    """
    worst: list[NDArray[np.float32]] = []
    for begin in range(0, forecasts.days, WINDOW_DAYS):
        block = forecasts.p_fail_30d[:, begin : begin + WINDOW_DAYS]
        opens = forecasts.first + begin
        healthy = (fates.first <= opens) & (fates.last >= opens + block.shape[1] + horizon)
        healthy |= (fates.first <= opens) & ~fates.died & (fates.last == fates.end)
        largest = np.where(np.isnan(block[healthy]), -1, block[healthy]).max(axis=1, initial=-1)
        worst.append(largest[largest >= 0])
    every = np.concatenate(worst)
    return float(np.quantile(every, 1 - share, method="higher")) if len(every) else None
