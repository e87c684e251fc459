"""The results of a replay at other costs of a failure, and a plain table of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from predrain.actions.core.drain_cost import COST_MAX
from predrain.actions.core.drain_policy import Policy
from predrain.actions.cost_benefit.byte_counts import CostBenefit, FigureInterval, worth_of
from predrain.actions.cost_benefit.replay_input import DailyForecasts, DriveFates, DriveLayout, Notch

FACTORS = ((0.25, " x 1/4"), (0.5, " x 1/2"), (1.0, ""), (2.0, " x 2"), (4.0, " x 4"))
"""Factors by which the set costs are multiplied."""
HERE = "as it is set"

TB = 10**12


@dataclass(frozen=True, slots=True)
class FailureCostRow:
    """One value of `failure_cost` and its result, judged by the set costs. `name` is for people."""

    name: str
    failure_cost: float
    worth: CostBenefit


def scale_costs(policy: Policy, factor: float) -> Policy:
    """Return the policy with every `failure_cost` times `factor`, within the allowed range."""

    def scaled(cost: float) -> float:
        return min(COST_MAX, max(1.0, cost * factor))

    return replace(
        policy,
        failure_cost=scaled(policy.failure_cost),
        failure_cost_overrides=tuple((place, scaled(cost)) for place, cost in policy.failure_cost_overrides),
    )


def compare_failure_costs(
    forecasts: DailyForecasts,
    fates: DriveFates,
    layout: DriveLayout,
    policy: Policy,
    notch: Notch,
    *,
    resamples: int = 200,
    seed: int = 0,
    reading_hours: int = 1,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[FailureCostRow, ...]:
    """Return the result at each factor; the policy's own row is named `HERE`."""
    cost_rows = []
    for factor, told in FACTORS:
        tried = scale_costs(policy, factor)
        worth = worth_of(
            forecasts,
            fates,
            layout,
            tried,
            notch,
            resamples=resamples,
            seed=seed,
            reading_hours=reading_hours,
            priced_by=policy,
        )
        name = f"failure_cost{told}" if told else f"failure_cost {HERE}"
        cost_rows.append(FailureCostRow(name, tried.failure_cost, worth))
        tell(f"worth at {name}: {_format_share(worth.cost_saved.value)} of the cost of failures saved")
    return tuple(cost_rows)


_HEAD = (
    "setting", "failure_cost", "cost saved", "failing bytes safe", "moved for nothing / 30 d", "drains", "in time",
    "for nothing", "died later", "undecided", "precision", "lead p50", "wait p90",
)  # fmt: skip


def format_cost_table(cost_rows: Iterable[FailureCostRow]) -> str:
    """Return the rows as plain text, one in each line, under a sentence that describes the replay."""
    rows = [(cost_row, cost_row.worth) for cost_row in cost_rows]
    if not rows:
        return "nothing was replayed"
    cells = [_HEAD, *(_format_cost_row(cost_row, worth) for cost_row, worth in rows)]
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
        f"{worth.failing_bytes / TB:,.1f} TB on them. Cost saved: of what the failures would cost without a drain, by "
        f"the costs that are set. For nothing: the drive lived on for {worth.horizon_days} days or "
        "more, though some died later; undecided: nobody knows. Precision is of drains that ended that long "
        "before the data."
    )
    return "\n".join([head, "", *lines])


def _format_cost_row(cost_row: FailureCostRow, worth: CostBenefit) -> tuple[str, ...]:
    return (
        cost_row.name,
        f"{cost_row.failure_cost:g}",
        _format_interval(worth.cost_saved),
        _format_interval(worth.migration_rate),
        _format_interval(worth.mismigration_rate, 3),
        f"{worth.drains:,}",
        f"{worth.in_time:,}",
        f"{worth.for_nothing:,}",
        f"{worth.died_later:,}",
        f"{worth.undecided:,}",
        _format_interval(worth.precision, 0),
        "-" if worth.lead_days is None else f"{worth.lead_days[1]:.0f} d",
        "-" if worth.wait_hours is None else f"{worth.wait_hours[1]:.0f} h",
    )


def _format_share(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{100 * value:.{digits}f} %"


def _format_interval(interval: FigureInterval, digits: int = 1) -> str:
    if interval.value is None or interval.low is None or interval.high is None:
        return _format_share(interval.value, digits)
    low, high = 100 * interval.low, 100 * interval.high
    return f"{_format_share(interval.value, digits)} [{low:.{digits}f}, {high:.{digits}f}]"
