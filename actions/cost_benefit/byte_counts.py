"""The figures: bytes moved in time and for nothing, with intervals by resampling drives.

Migration rate and mis-migration rate: J. Li et al., "Being Accurate Is Not Enough: New Metrics for Disk
Failure Prediction", SRDS 2016. The mis-migration rate is given here for a byte and 30 days, so that replays
of different lengths can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from predrain.actions.core.drain_policy import Policy
from predrain.actions.cost_benefit.drain_replay import ReplayResult, replay_forecast_days
from predrain.actions.cost_benefit.replay_input import (
    WINDOW_DAYS,
    DailyForecasts,
    DriveFates,
    DriveLayout,
    Floats,
    Ints,
    Notch,
)

HORIZON_DAYS = 30


@dataclass(frozen=True, slots=True)
class FigureInterval:
    """A figure with the 2.5 and 97.5 percentiles of its resamples; None is unknown."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class CostBenefit:
    """The value of a forecast under a policy, with one pair of thresholds, from day `first` to day `last`.

    A drive that died in that time is failing; bytes that were off it by then are safe. A drain was *for
    nothing* if its drive lived on for `horizon_days` or more after the drain ended, and *in time* if the
    drive died sooner. It is *undecided* if the drive was removed alive or the data ends sooner. (Bytes of a
    failing drive that lived on longer than the horizon are both safe and moved for nothing.) Invariant: 0 <=
    safe_bytes <= failing_bytes; in_time + for_nothing + undecided == drains.
    """

    first: str
    last: str
    horizon_days: int
    drives: int
    """Drives that were in service at any time."""
    failures: int
    failing_bytes: int
    safe_bytes: int
    migration_rate: FigureInterval
    """safe_bytes / failing_bytes, in [0, 1]; higher is better."""
    moved_bytes: int
    nothing_bytes: int
    mismigration_rate: FigureInterval
    """nothing_bytes for each byte and 30 days on drives that are known to have lived on for the horizon;
    lower is better.
    """
    cost_saved: FigureInterval
    """The share of the cost of failures without drains that is saved, after paying for the moves, drive by
    drive: (failure_cost x safe_bytes - moved_bytes) / (failure_cost x failing_bytes). At most 1; below 0 if
    drains cost more than they save.
    """
    drains: int
    in_time: int
    for_nothing: int
    died_later: int
    """The drives of `for_nothing` that died after the horizon, inside the data."""
    undecided: int
    precision: FigureInterval
    """in_time / (in_time + for_nothing), in [0, 1], of drains that ended a whole horizon before the end of
    the data. Of later drains only those whose drive died would be known.
    """
    saved_whole: int
    """Failing drives that were empty before they died."""
    cut_short: int
    """Failing drives that died while they were drained."""
    lead_days: tuple[float, float, float] | None
    """p10, p50, p90 from proposal to death, of failing drives that were drained; None if there is none."""
    wait_hours: tuple[float, float, float] | None
    """p50, p90 and longest time from proposal to the beginning of a drain; None if none began."""
    refused: Mapping[str, int]
    """Guard's code -> number of drives that it held at least once before their drain began (`budget`: they
    queued).
    """
    failing_refused: Mapping[str, int]
    """The same for failing drives whose drain never began."""


def worth_of(
    forecasts: DailyForecasts,
    fates: DriveFates,
    layout: DriveLayout,
    policy: Policy,
    notch: Notch,
    *,
    horizon_days: int = HORIZON_DAYS,
    resamples: int = 200,
    seed: int = 0,
    reading_hours: int = 1,
    priced_by: Policy | None = None,
) -> CostBenefit:
    """Replay the forecasts under the policy and count the results. The function is pure.

    priced_by: the policy whose costs judge the drains; by default the one that decides. Drives without a
    forecast count too: the bytes of those that died were not saved.
    """
    done = replay_forecast_days(forecasts, fates, layout, policy, notch, reading_hours=reading_hours)
    book = _Book.from_replay(done, fates, layout, horizon_days, priced_by or policy)
    rates = _estimate_rates(book.columns(), resamples, seed)
    hours = [24 * (drain.begun - drain.proposed) for drain in done.drains]
    drained = {drain.drive for drain in done.drains}
    lead = [
        float(fates.last[drain.drive]) - drain.proposed for drain in done.drains if book.failing[drain.drive]
    ]
    return CostBenefit(
        first=_format_day(done.first),
        last=_format_day(done.last),
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
        lead_days=_compute_quantiles(lead, (0.1, 0.5, 0.9)),
        wait_hours=_compute_quantiles(hours, (0.5, 0.9, 1.0)),
        refused={code: len(drives) for code, drives in done.refused.items()},
        failing_refused={
            code: sum(bool(book.failing[drive]) for drive in drives - drained)
            for code, drives in done.refused.items()
        },
    )


@dataclass(frozen=True, slots=True)
class _Book:
    """The contribution of each drive (n) to the figures; a drive is drained once at most."""

    present: NDArray[np.bool_]
    failing: NDArray[np.bool_]
    failing_bytes: Ints
    safe: Ints
    moved: Ints
    failure_cost: Floats
    """The cost of a rebuilt byte of the drive."""
    nothing: Ints
    exposure: Floats
    """Byte-days on which the drive is known to have lived on for the horizon."""
    in_time: Ints
    for_nothing: Ints
    early: NDArray[np.bool_]
    """True if its drain ended a whole horizon before the end of the data."""

    @classmethod
    def from_replay(
        cls, done: ReplayResult, fates: DriveFates, layout: DriveLayout, horizon: int, prices: Policy
    ) -> _Book:
        """Judge every drain by what became of its drive."""
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
        """Return rate -> (numerator, denominator), each (n,)."""
        in_time = self.in_time * self.early
        pairs: dict[str, tuple[NDArray[np.number], NDArray[np.number]]] = {
            "migration": (self.safe, self.failing_bytes),
            "mismigration": (self.nothing, self.exposure / WINDOW_DAYS),
            "cost": (self.failure_cost * self.safe - self.moved, self.failure_cost * self.failing_bytes),
            "precision": (in_time, in_time + self.for_nothing),
        }
        return {name: (a.astype(np.float64), b.astype(np.float64)) for name, (a, b) in pairs.items()}


def failure_costs(layout: DriveLayout, policy: Policy) -> Floats:
    """Return (drives,) costs of a rebuilt byte, by the drive's host."""
    hosts, place = np.unique(layout.host, return_inverse=True)
    costs = [policy.death_costs(f"host-{host}", None).failure_cost for host in hosts]
    return np.array(costs, dtype=np.float64)[place]


def _estimate_rates(
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


def _compute_quantiles(
    values: list[float], at: tuple[float, float, float]
) -> tuple[float, float, float] | None:
    if not values:
        return None
    low, middle, high = (float(value) for value in np.quantile(values, at))
    return low, middle, high


def _format_day(day: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()
