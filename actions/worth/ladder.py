"""What a notch up or down would have given, and the plain table that says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from actions.policy import Policy
from actions.worth.given import Fates, Forecasts, Layout, Notch, threshold_at
from actions.worth.tally import HORIZON_DAYS, Interval, Worth, worth_of

FACTORS = ((0.25, "x 1/4"), (0.5, "x 1/2"), (1.0, "as they are"), (2.0, "x 2"), (4.0, "x 4"))
SHARES = (0.0003, 0.001, 0.003, 0.01, 0.03)
"""Shares of healthy windows (a drive's 30 days) flagged: the rungs of the ladder by quantile."""

TB = 10**12


@dataclass(frozen=True, slots=True)
class Rung:
    """One notch and what it gave."""

    notch: Notch
    worth: Worth


def notches(forecasts: Forecasts, fates: Fates, notch: Notch) -> tuple[Notch, ...]:
    """The bundle's thresholds times 1/4 to 4, then those that SHARES of the healthy windows replayed reach.

    The second kind is read off the months that are judged: it says what was to be had, not what would have been set.
    """
    scaled = [notch.times(factor, f"thresholds {name}") for factor, name in FACTORS]
    for share in SHARES:
        bad = threshold_at(share, forecasts, fates, HORIZON_DAYS)
        if bad is not None:
            scaled.append(Notch(f"{100 * share:g} % of healthy windows", min(notch.warning, bad), bad))
    return tuple(scaled)


def ladder(
    forecasts: Forecasts,
    fates: Fates,
    layout: Layout,
    policy: Policy,
    notch: Notch,
    *,
    resamples: int = 200,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Rung, ...]:
    """The worth at every notch; the bundle's own is named "thresholds as they are"."""
    rungs = []
    for step in notches(forecasts, fates, notch):
        worth = worth_of(forecasts, fates, layout, policy, step, resamples=resamples, seed=seed)
        rungs.append(Rung(step, worth))
        tell(f"worth at {step.name}: {_share(worth.migration_rate.value)} of failing bytes safe")
    return tuple(rungs)


_HEAD = (
    "notch", "bad from", "failing bytes safe", "moved for nothing / 30 d", "drains", "in time", "for nothing",
    "died later", "undecided", "precision", "lead p50", "wait p90",
)  # fmt: skip


def table(rungs: Iterable[Rung]) -> str:
    """The rungs as plain text, one a line under a sentence that says what was replayed."""
    rows = [(rung, rung.worth) for rung in rungs]
    if not rows:
        return "nothing was replayed"
    cells = [_HEAD, *(_row(rung, worth) for rung, worth in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(_HEAD))]
    lines = [
        "  ".join(
            text.rjust(width) if place else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    worth = rows[0][1]
    head = (
        f"{worth.first} to {worth.last}: {worth.drives:,} drives, {worth.failures:,} failed with "
        f"{worth.failing_bytes / TB:,.1f} TB on them. For nothing: the drive lived on for {worth.horizon_days} days or "
        "more, though some died later; undecided: nobody knows. Precision is of drains that ended that long "
        "before the data."
    )
    return "\n".join([head, "", *lines])


def _row(rung: Rung, worth: Worth) -> tuple[str, ...]:
    return (
        rung.notch.name,
        f"{rung.notch.bad:.4f}",
        _interval(worth.migration_rate),
        _interval(worth.mismigration_rate, 3),
        f"{worth.drains:,}",
        f"{worth.in_time:,}",
        f"{worth.for_nothing:,}",
        f"{worth.died_later:,}",
        f"{worth.undecided:,}",
        _interval(worth.precision, 0),
        "-" if worth.lead_days is None else f"{worth.lead_days[1]:.0f} d",
        "-" if worth.wait_hours is None else f"{worth.wait_hours[1]:.0f} h",
    )


def _share(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{100 * value:.{digits}f} %"


def _interval(interval: Interval, digits: int = 1) -> str:
    if interval.value is None or interval.low is None or interval.high is None:
        return _share(interval.value, digits)
    low, high = 100 * interval.low, 100 * interval.high
    return f"{_share(interval.value, digits)} [{low:.{digits}f}, {high:.{digits}f}]"
