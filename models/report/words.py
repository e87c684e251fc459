"""Numbers and sentences for people. What is unknown is a dash; what rests on too little is said to be no evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date

from predrain.models.backtest.trial import Backtest, FleetTrial
from predrain.models.evaluate import BootstrapInterval
from predrain.models.evaluate.life import EVIDENCE

NO_EVIDENCE = "no evidence"


def percent(value: float, digits: int = 0) -> str:
    """0.0123 as `1 %`."""
    return "–" if math.isnan(value) else f"{100 * value:.{digits}f} %"


def share(figure: BootstrapInterval, digits: int = 0) -> str:
    """A share with its interval, in percents: `54 % [44, 63]`."""
    if math.isnan(figure.value) or math.isnan(figure.low):
        return percent(figure.value, digits)
    return f"{percent(figure.value, digits)} [{100 * figure.low:.{digits}f}, {100 * figure.high:.{digits}f}]"


def plain(figure: BootstrapInterval, digits: int = 3, *, signed: bool = False) -> str:
    """A number with its interval: `0.122 [0.060, 0.200]`."""
    sign = "+" if signed else ""
    if math.isnan(figure.value):
        return "–"
    if math.isnan(figure.low):
        return f"{figure.value:{sign}.{digits}f}"
    return f"{figure.value:{sign}.{digits}f} [{figure.low:{sign}.{digits}f}, {figure.high:{sign}.{digits}f}]"


def points(difference: BootstrapInterval) -> str:
    """A difference of shares in percentage points: `+14 [+7, +23]`."""
    value, low, high = (100 * number for number in (difference.value, difference.low, difference.high))
    return f"{value:+.1f} [{low:+.1f}, {high:+.1f}]"


def tell_points(difference: BootstrapInterval) -> str:
    """`points`, with `real` where the interval excludes 0."""
    return points(difference) + (" real" if difference.excludes_zero else "")


def day(when: date | str) -> str:
    """`30 April 2018`."""
    one = date.fromisoformat(when) if isinstance(when, str) else when
    return f"{one.day} {one:%B %Y}"


def joined(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def summary(fleet: FleetTrial) -> Iterator[str]:
    """What a person should know of one fleet, the most important sentence first."""
    ours, counts = fleet.report.judged[0], fleet.report.counts
    recall, lead = ours.figures["recall_at_1pct"], ours.figures["lead_p50_days_at_1pct"].value
    head = (
        f"Of {counts.failures:,} failures between {day(counts.first_landmark)} and {day(counts.last_day)}, "
        f"predrain announced {share(recall)} while flagging 1 % of the healthy drives in 30 days"
    )
    yield head + ("." if math.isnan(lead) else f", half of them {lead:.0f} days or more ahead.")
    if counts.failures < EVIDENCE:
        yield f"{counts.failures} failures are fewer than {EVIDENCE}: no figure below is evidence."
    yield from _beside_peers(fleet)
    if "expected_over_observed_30d" in ours.figures:
        ratio = ours.figures["expected_over_observed_30d"]
        yield (f"It expected {plain(ratio, 2)} failures for each that came within 30 days{_meant(ratio)}.")
    if counts.silent:
        silent = ours.figures["recall[silent]_at_1pct"]
        said = "" if counts.silent >= EVIDENCE else f" ({NO_EVIDENCE})"
        yield (
            f"{counts.silent:,} of the failures showed no symptom in five counters a day before; "
            f"{share(silent)} of these were announced{said}."
        )


def ahead(backtest: Backtest) -> str:
    """Whether the forecast looked at later days."""
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
            f"{peer} ({points(figure)} points)"
        )
    if won:
        yield f"At that rate it announced more than {joined(won)}: real differences, on the same drives."
    if lost:
        yield f"It announced less than {joined(lost)}: real differences."
    if open_:
        yield f"It cannot be told apart from {joined(open_)} with these failures."


def _meant(ratio: BootstrapInterval) -> str:
    if ratio.low <= 1.0 <= ratio.high:
        return ", which chance explains"
    return ", too many" if ratio.value > 1 else ", too few"
