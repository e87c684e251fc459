"""Numbers and sentences for people. An unknown number is a dash, and a figure with too few failures is "no
evidence"."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date

from predrain.models.evaluate import BootstrapInterval
from predrain.models.evaluate.censoring_weights import EVIDENCE
from predrain.models.lab.backtest.backtest_plan import Backtest, FleetTrial

NO_EVIDENCE = "no evidence"


def format_percent(value: float, digits: int = 0) -> str:
    """Format 0.0123 as `1 %`."""
    return "–" if math.isnan(value) else f"{100 * value:.{digits}f} %"


def format_share(figure: BootstrapInterval, digits: int = 0) -> str:
    """Format a share with its interval, in per cent: `54 % [44, 63]`."""
    if math.isnan(figure.value) or math.isnan(figure.low):
        return format_percent(figure.value, digits)
    return f"{format_percent(figure.value, digits)} [{100 * figure.low:.{digits}f}, {100 * figure.high:.{digits}f}]"


def format_interval(figure: BootstrapInterval, digits: int = 3, *, signed: bool = False) -> str:
    """Format a number with its interval: `0.122 [0.060, 0.200]`."""
    sign = "+" if signed else ""
    if math.isnan(figure.value):
        return "–"
    if math.isnan(figure.low):
        return f"{figure.value:{sign}.{digits}f}"
    return f"{figure.value:{sign}.{digits}f} [{figure.low:{sign}.{digits}f}, {figure.high:{sign}.{digits}f}]"


def format_percentage_points(difference: BootstrapInterval) -> str:
    """Format a difference of shares in percentage points: `+14 [+7, +23]`."""
    value, low, high = (100 * number for number in (difference.value, difference.low, difference.high))
    return f"{value:+.1f} [{low:+.1f}, {high:+.1f}]"


def tell_points(difference: BootstrapInterval) -> str:
    """Format as `format_percentage_points` does, with `real` if the interval excludes 0."""
    return format_percentage_points(difference) + (" real" if difference.excludes_zero else "")


def format_long_date(when: date | str) -> str:
    """Format a date as `30 April 2018`."""
    one = date.fromisoformat(when) if isinstance(when, str) else when
    return f"{one.day} {one:%B %Y}"


def join_with_and(words: Sequence[str]) -> str:
    """Join words as `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def summarize_fleet(fleet: FleetTrial) -> Iterator[str]:
    """Yield the sentences that summarize one fleet, the most important first."""
    ours, counts = fleet.report.judged[0], fleet.report.counts
    recall, lead = ours.figures["recall_at_1pct"], ours.figures["lead_p50_days_at_1pct"].value
    head = (
        f"Of {counts.failures:,} failures between {format_long_date(counts.first_landmark)} and "
        f"{format_long_date(counts.last_day)}, "
        f"predrain announced {format_share(recall)} while flagging 1 % of the healthy drives in 30 days"
    )
    yield head + ("." if math.isnan(lead) else f", half of them {lead:.0f} days or more ahead.")
    if counts.failures < EVIDENCE:
        yield f"{counts.failures} failures are fewer than {EVIDENCE}: no figure below is evidence."
    yield from _beside_peers(fleet)
    if "expected_over_observed_30d" in ours.figures:
        ratio = ours.figures["expected_over_observed_30d"]
        yield (
            f"It expected {format_interval(ratio, 2)} failures for each that came within 30 "
            f"days{_explain_ratio(ratio)}."
        )
    if counts.silent:
        silent = ours.figures["recall[silent]_at_1pct"]
        said = "" if counts.silent >= EVIDENCE else f" ({NO_EVIDENCE})"
        yield (
            f"{counts.silent:,} of the failures showed no symptom in five counters a day before; "
            f"{format_share(silent)} of these were announced{said}."
        )


def describe_leakage_check(backtest: Backtest) -> str:
    """Describe whether the forecast looked at later days."""
    rows = sum(trial.looked_ahead.rows for fleet in backtest.fleets for trial in fleet.origins)
    changed = len(backtest.looked_ahead)
    if changed:
        return f"The forecast looked ahead: {changed:,} values changed when later days were cut off. Trust nothing."
    return f"Scored again from histories that end on the landmark, all {rows:,} rows came out the same."


def _beside_peers(fleet: FleetTrial) -> Iterator[str]:
    ours = fleet.report.judged[0]
    won, lost, open_ = list[str](), list[str](), list[str]()
    for peer, differences in ours.less_baseline.items():
        figure = differences["recall_at_1pct"]
        (won if figure.low > 0 else lost if figure.high < 0 else open_).append(
            f"{peer} ({format_percentage_points(figure)} points)"
        )
    if won:
        yield f"At that rate it announced more than {join_with_and(won)}: real differences, on the same drives."
    if lost:
        yield f"It announced less than {join_with_and(lost)}: real differences."
    if open_:
        yield f"These failures do not distinguish it from {join_with_and(open_)}."


def _explain_ratio(ratio: BootstrapInterval) -> str:
    if ratio.low <= 1.0 <= ratio.high:
        return ", which chance explains"
    return ", too many" if ratio.value > 1 else ", too few"
