"""The figures: bytes moved in time and for nothing, with intervals by resampling drives.

Migration rate and mis-migration rate: J. Li et al., "Being Accurate Is Not Enough: New Metrics for Disk Failure
Prediction", SRDS 2016. The second is given for a byte and 30 days here, so that replays of different lengths compare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from predrain.actions.core.policy import Policy
from predrain.actions.cost_benefit.given import (
    WINDOW_DAYS,
    DailyForecasts,
    Fates,
    Floats,
    Ints,
    Layout,
    Notch,
)
from predrain.actions.cost_benefit.replay import ReplayResult, replay

HORIZON_DAYS = 30


@dataclass(frozen=True, slots=True)
class FigureInterval:
    """A figure with the 2.5 and 97.5 percentiles of its resamples; None is unknown."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Worth:
    """What a forecast was worth under a policy, at one notch, from day `first` to day `last`.

    A drive that died in that time is failing; bytes that were off it by then are safe. A drain was *for nothing* when
    its drive lived on for `horizon_days` or more after it ended, *in time* when the drive died sooner. Where the
    drive was removed alive or the data ends sooner, nobody knows: *undecided*. (Bytes of a failing drive that lived
    on longer than the horizon are both safe and moved for nothing.)
    Invariant: 0 <= safe_bytes <= failing_bytes; in_time + for_nothing + undecided == drains.
    """

    first: str
    last: str
    horizon_days: int
    drives: int
    """In service at any time."""
    failures: int
    failing_bytes: int
    safe_bytes: int
    migration_rate: FigureInterval
    """safe_bytes / failing_bytes, in [0, 1]; higher is better."""
    moved_bytes: int
    nothing_bytes: int
    mismigration_rate: FigureInterval
    """nothing_bytes for each byte and 30 days on drives that were seen to live on for the horizon; lower is better."""
    cost_saved: FigureInterval
    """Of what the failures would cost without a drain, the share that is saved with the moves paid, drive by drive:
    (failure_cost x safe_bytes - moved_bytes) / (failure_cost x failing_bytes). At most 1; below 0 where drains cost
    more than they save.
    """
    drains: int
    in_time: int
    for_nothing: int
    died_later: int
    """Of `for_nothing`: drives that died after the horizon, inside the data."""
    undecided: int
    precision: FigureInterval
    """in_time / (in_time + for_nothing), in [0, 1], of drains that ended a whole horizon before the data: of later
    ones only those whose drive died would be known.
    """
    saved_whole: int
    """Failing drives that were empty before they died."""
    cut_short: int
    """Failing drives that died while they were drained."""
    lead_days: tuple[float, float, float] | None
    """p10, p50, p90 from proposal to death, of failing drives that were drained; None where there is none."""
    wait_hours: tuple[float, float, float] | None
    """p50, p90 and longest, from proposal to the beginning of a drain; None where none began."""
    refused: Mapping[str, int]
    """Guard's code -> drives that it held back at least once before their drain began (`budget`: they queued)."""
    failing_refused: Mapping[str, int]
    """The same for failing drives whose drain never began."""


def worth_of(
    forecasts: DailyForecasts,
    fates: Fates,
    layout: Layout,
    policy: Policy,
    notch: Notch,
    *,
    horizon_days: int = HORIZON_DAYS,
    resamples: int = 200,
    seed: int = 0,
    reading_hours: int = 1,
    priced_by: Policy | None = None,
) -> Worth:
    """Replay the forecasts under the policy and count. A function of its arguments alone.

    priced_by: the policy whose costs the drains are judged by; the one that decides, where none is given.
    Drives on which nothing was forecast count too: the bytes of those that died were not saved.
    """
    done = replay(forecasts, fates, layout, policy, notch, reading_hours=reading_hours)
    book = _Book.of(done, fates, layout, horizon_days, priced_by or policy)
    rates = _rates(book.columns(), resamples, seed)
    hours = [24 * (drain.begun - drain.proposed) for drain in done.drains]
    drained = {drain.drive for drain in done.drains}
    lead = [
        float(fates.last[drain.drive]) - drain.proposed for drain in done.drains if book.failing[drain.drive]
    ]
    return Worth(
        first=_date(done.first),
        last=_date(done.last),
        horizon_days=horizon_days,
        drives=int(book.present.sum()),
        failures=int(book.failing.sum()),
        failing_bytes=int(layout.used_bytes[book.failing].sum()),
        safe_bytes=int(book.safe.sum()),
        migration_rate=rates["migration"],
        moved_bytes=sum(drain.moved_bytes for drain in done.drains),
        nothing_bytes=int(book.nothing.sum()),
        mismigration_rate=rates["mismigration"],
        cost_saved=rates["cost"],
        drains=len(done.drains),
        in_time=int(book.in_time.sum()),
        for_nothing=int(book.for_nothing.sum()),
        died_later=int((book.for_nothing * fates.died).sum()),
        undecided=len(done.drains) - int(book.in_time.sum()) - int(book.for_nothing.sum()),
        precision=rates["precision"],
        saved_whole=sum(drain.whole for drain in done.drains if book.failing[drain.drive]),
        cut_short=sum(not drain.whole for drain in done.drains if book.failing[drain.drive]),
        lead_days=_quantiles(lead, (0.1, 0.5, 0.9)),
        wait_hours=_quantiles(hours, (0.5, 0.9, 1.0)),
        refused={code: len(drives) for code, drives in done.refused.items()},
        failing_refused={
            code: sum(bool(book.failing[drive]) for drive in drives - drained)
            for code, drives in done.refused.items()
        },
    )


@dataclass(frozen=True, slots=True)
class _Book:
    """What each drive (n) adds to the figures; a drive is drained once at most."""

    present: NDArray[np.bool_]
    failing: NDArray[np.bool_]
    failing_bytes: Ints
    safe: Ints
    moved: Ints
    failure_cost: Floats
    """What a byte on the drive costs that is rebuilt."""
    nothing: Ints
    exposure: Floats
    """Byte-days on which the drive was seen to live on for the horizon."""
    in_time: Ints
    for_nothing: Ints
    early: NDArray[np.bool_]
    """Its drain ended a whole horizon before the data."""

    @classmethod
    def of(cls, done: ReplayResult, fates: Fates, layout: Layout, horizon: int, prices: Policy) -> _Book:
        """Judge every drain by its drive's fate."""
        size = len(fates.last)
        present = (fates.first <= done.last) & (fates.last >= done.first)
        failing = fates.died & (fates.last > done.first) & (fates.last <= done.last)
        safe, moved, nothing, in_time, for_nothing = (np.zeros(size, dtype=np.int64) for _ in range(5))
        early = np.zeros(size, dtype=bool)
        for drain in done.drains:
            drive = drain.drive
            lived_on = float(fates.last[drive]) - drain.ended
            moved[drive] = drain.moved_bytes
            safe[drive] = drain.moved_bytes * failing[drive]
            in_time[drive] = fates.died[drive] and lived_on < horizon
            for_nothing[drive] = lived_on >= horizon
            nothing[drive] = drain.moved_bytes * for_nothing[drive]
            early[drive] = drain.ended <= fates.end - horizon
        until = np.minimum(fates.last - horizon, done.last)
        days = np.maximum(0, until - np.maximum(fates.first, done.first) + 1)
        return cls(
            present,
            failing,
            layout.used_bytes * failing,
            safe,
            moved,
            failure_costs(layout, prices),
            nothing,
            layout.used_bytes * days.astype(np.float64),
            in_time,
            for_nothing,
            early,
        )

    def columns(self) -> dict[str, tuple[Floats, Floats]]:
        """Rate -> (what is counted, of what), each (n,)."""
        in_time = self.in_time * self.early
        pairs: dict[str, tuple[NDArray[np.number], NDArray[np.number]]] = {
            "migration": (self.safe, self.failing_bytes),
            "mismigration": (self.nothing, self.exposure / WINDOW_DAYS),
            "cost": (self.failure_cost * self.safe - self.moved, self.failure_cost * self.failing_bytes),
            "precision": (in_time, in_time + self.for_nothing),
        }
        return {name: (a.astype(np.float64), b.astype(np.float64)) for name, (a, b) in pairs.items()}


def failure_costs(layout: Layout, policy: Policy) -> Floats:
    """(drives,) What a rebuilt byte costs, by the drive's host."""
    hosts, place = np.unique(layout.host, return_inverse=True)
    costs = [policy.death_costs(f"host-{host}", None).failure_cost for host in hosts]
    return np.array(costs, dtype=np.float64)[place]


def _rates(
    columns: Mapping[str, tuple[Floats, Floats]], resamples: int, seed: int
) -> dict[str, FigureInterval]:
    chance = np.random.default_rng(seed)
    table = np.column_stack([part for pair in columns.values() for part in pair])
    drives = len(table)
    sums = np.empty((resamples, table.shape[1]))
    for number in range(resamples):
        weight = np.bincount(chance.integers(drives, size=drives), minlength=drives)
        sums[number] = weight @ table
    found = {}
    for place, name in enumerate(columns):
        count, of = table[:, 2 * place].sum(), table[:, 2 * place + 1].sum()
        parts = sums[sums[:, 2 * place + 1] > 0]
        if of <= 0 or not len(parts):
            found[name] = FigureInterval(float(count / of) if of > 0 else None, None, None)
            continue
        low, high = np.percentile(parts[:, 2 * place] / parts[:, 2 * place + 1], [2.5, 97.5])
        found[name] = FigureInterval(float(count / of), float(low), float(high))
    return found


def _quantiles(values: list[float], at: tuple[float, float, float]) -> tuple[float, float, float] | None:
    if not values:
        return None
    low, middle, high = (float(value) for value in np.quantile(values, at))
    return low, middle, high


def _date(day: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()
