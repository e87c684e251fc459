"""The quality of the forecast on drives that it has not learned from, as rows for the page and the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from predrain.models.evaluate.bootstrap import BootstrapInterval, ForecastFigures, Report
from predrain.models.evaluate.censoring_weights import EVIDENCE
from predrain.models.lab.backtest.backtest_plan import FleetTrial, LeftOutTrial
from predrain.models.lab.backtest.left_out_drives import LeaveOutKind
from predrain.models.lab.backtest.unseen_drives import KNOWING
from predrain.models.lab.report.report_tables import TableText
from predrain.models.lab.report.report_texts import (
    NO_EVIDENCE,
    format_interval,
    format_long_date,
    format_percent,
    format_share,
    tell_points,
)

RULES: Final = ("level", "rise")
"""The two rules that need no training. A forecast that transfers is at or above the better one."""
FIGURES: Final = {
    "recall_at_0.1pct": "recall at 0.1 %",
    "recall_at_1pct": "recall at 1 %",
    "pr_auc": "PR-AUC",
}


def left_out_tables(fleet: FleetTrial) -> list[TableText]:
    """Return two tables for each split and kind of left-out sets: the figures of each set, and its differences to
    the others."""
    found: list[TableText] = []
    for trial in fleet.origins:
        for kind in LeaveOutKind:
            mine = [one for one in trial.left_out if one.left_out.kind is kind]
            if mine:
                about = f"{TITLE_TEXTS[kind]}, known by {format_long_date(trial.origin.split)}"
                found += [_tabulate_figures(about, mine), _tabulate_differences(about, mine)]
    return found


def find_better_rule(report: Report, figure: str) -> str | None:
    """Return the one of `level` and `rise` with the larger value of a figure, or None if neither was asked."""
    values = {one.name: one.figures[figure].value for one in report.judged if one.name in RULES}
    known = {name: value for name, value in values.items() if not math.isnan(value)}
    return max(known, key=lambda name: known[name]) if known else None


def compute_kept_share(report: Report, figure: str) -> float:
    """Return predrain's figure divided by that of the same recipe trained on all drives, or NaN without one."""
    knowing = next((one for one in report.judged if one.name == KNOWING), None)
    if knowing is None or not knowing.figures[figure].value > 0:
        return math.nan
    return report.judged[0].figures[figure].value / knowing.figures[figure].value


TITLE_TEXTS: Final = {
    LeaveOutKind.MAKER: "Makers left out of the training",
    LeaveOutKind.MODEL: "Models left out of the training",
    LeaveOutKind.ERA: "Models first seen after the split",
}


def _tabulate_figures(about: str, trials: Sequence[LeftOutTrial]) -> TableText:
    head = [
        "", "deaths\njudged", "recall at 0.1 %\n(of the one\ntrained on all)", "less the\nbetter rule",
        "recall at 1 %\n(of the one\ntrained on all)", "less the\nbetter rule", "PR-AUC", "expected /\nobserved",
        "after 91 days\nof its own",
    ]  # fmt: skip
    return TableText(about, head, [_list_figures(one) for one in trials])


def _list_figures(trial: LeftOutTrial) -> list[str]:
    report, figures = trial.report, trial.report.judged[0].figures
    failures = report.counts.failures
    cells = [trial.left_out.name, f"{failures:,}" + ("" if failures >= EVIDENCE else f"\n{NO_EVIDENCE}")]
    for figure in ("recall_at_0.1pct", "recall_at_1pct"):
        rule, kept = find_better_rule(report, figure), compute_kept_share(report, figure)
        cells += [
            format_share(figures[figure]) + ("" if math.isnan(kept) else f"\n({format_percent(kept)})"),
            "–" if rule is None else _tell_difference(report, rule, figure).replace("]", f"]\n{rule}"),
        ]
    ratio = figures.get("expected_over_observed_30d", _UNKNOWN)
    later = trial.experienced
    after = later.judged[0].figures.get("expected_over_observed_30d", _UNKNOWN) if later else _UNKNOWN
    ratios = (format_interval(one, 2).replace(" ", "\n", 1) for one in (ratio, after))
    return [*cells, f"{figures['pr_auc'].value:.3f}", *ratios]


def _tabulate_differences(about: str, trials: Sequence[LeftOutTrial]) -> TableText:
    rows = [
        [f"{trial.left_out.name}: {one.name}", *_list_differences(trial.report, one)]
        for trial in trials
        for one in trial.report.judged[1:]
    ]
    head = [
        "",
        *(cell for name in FIGURES.values() for cell in (name.replace(" at", "\nat"), "ours\nless this")),
    ]
    return TableText(f"{about}: the others on the same drives and resamples", head, rows)


def _list_differences(report: Report, other: ForecastFigures) -> list[str]:
    cells: list[str] = []
    for figure in FIGURES:
        value = other.figures[figure].value
        cells += [
            f"{value:.3f}" if figure == "pr_auc" else format_percent(value),
            _tell_difference(report, other.name, figure),
        ]
    return cells


def _tell_difference(report: Report, name: str, figure: str) -> str:
    """Format a difference: percentage points of a recall, PR-AUC as it is."""
    difference = report.judged[0].less_baseline[name].get(figure, _UNKNOWN)
    if math.isnan(difference.value):
        return "–"
    if figure != "pr_auc":
        return tell_points(difference)
    return format_interval(difference, signed=True) + (" real" if difference.excludes_zero else "")


_UNKNOWN: Final = BootstrapInterval(math.nan, math.nan, math.nan)
