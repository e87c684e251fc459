"""A report as tables for people. Unknown values are shown as a dash."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from rich import box
from rich.console import RenderableType
from rich.table import Table

from predrain.models.evaluate.bootstrap import BootstrapInterval, ForecastFigures, Report
from predrain.models.evaluate.censoring_weights import EVIDENCE
from predrain.models.evaluate.cohort import ALARMS
from predrain.models.evaluate.expectancy_scores import AIMS
from predrain.models.evaluate.truncation_test import Truncation

POINTS = {"0.1pct": "0.1 %", "1pct": "1 %"}
SHOWN = 20
"""Number of differences of a truncation test that are listed; the others are only counted."""


def render_evaluation_report(report: Report, cut: Truncation | None) -> Iterator[RenderableType]:
    """Yield the tables and sentences of a report, in the order of the protocol."""
    counts = report.counts
    yield (
        f"{counts.landmarks} landmarks {counts.first_landmark} to {counts.last_landmark}, "
        f"data to {counts.last_day}: "
        f"{counts.drives:,} drives at risk, {counts.failures:,} failures ({counts.silent:,} silent), "
        f"{counts.windows:,} healthy windows, {counts.rows:,} rows with a known outcome "
        f"(base rate {_format_percent(counts.positive_rows / counts.rows)}), {counts.censored:,} censored"
        + (f", {counts.left_out:,} drives left out" if counts.left_out else "")
    )
    yield _build_ranking_table(report)
    if any(name.startswith("recall_at_own") for judged in report.judged for name in judged.figures):
        yield _own_alarms(report)
    for judged in report.judged:
        if judged.reliability:
            yield _build_calibration_table(judged)
        if judged.life:
            yield _build_life_table(judged)
    yield _build_strata_table(report)
    for name, differences in report.judged[0].less_baseline.items():
        yield _build_differences_table(name, differences)
    if counts.failures < EVIDENCE:
        yield f"{counts.failures} failures are fewer than {EVIDENCE}: none of these figures is evidence."
    yield f"Intervals: 2.5 to 97.5 % of {report.resamples:,} resamples of the drives, seed {report.seed}."
    for judged in report.judged:
        if judged.missing or judged.ignored:
            yield (
                f"{judged.name}: {judged.missing:,} expected rows are missing and stand below every other; "
                f"{judged.ignored:,} rows are for other drives or days and were ignored."
            )
    if cut is not None:
        yield from _describe_truncation(cut)


def _build_ranking_table(report: Report) -> Table:
    table = _create_table(
        "Ranking",
        "scores",
        "at",
        "recall",
        "row FAR",
        "lead, days",
        ">= 7 d",
        ">= 14 d",
    )
    for judged in report.judged:
        figures = judged.figures
        for point, shown in POINTS.items():
            lead = "/".join(
                _format_number(figures[f"lead_p{share}_days_at_{point}"].value, 0) for share in (10, 50, 90)
            )
            table.add_row(
                judged.name,
                shown,
                _format_interval(figures[f"recall_at_{point}"]),
                _format_percent(figures[f"row_far_at_{point}"].value),
                lead,
                _format_percent(figures[f"lead_share_7d_at_{point}"].value, 0),
                _format_percent(figures[f"lead_share_14d_at_{point}"].value, 0),
            )
        table.add_row(judged.name, "PR-AUC", _format_interval(figures["pr_auc"]))
    return table


def _own_alarms(report: Report) -> Table:
    table = _create_table("At their own alarms", "scores", "alarm", "recall", "healthy windows flagged")
    for judged in report.judged:
        for word in ALARMS[::-1]:
            if f"recall_at_own_{word}" in judged.figures:
                recall, far = (judged.figures[f"{what}_at_own_{word}"] for what in ("recall", "far"))
                told = word if word == ALARMS[-1] else f"{word} or worse"
                table.add_row(judged.name, told, _format_interval(recall), _format_interval(far, 4))
    return table


def _build_calibration_table(judged: ForecastFigures) -> Table:
    table = _create_table(
        f"Calibration of {judged.name}", "horizon", "expected/observed", "Brier skill", "ECE"
    )
    for horizon in judged.reliability:
        names = (f"expected_over_observed_{horizon}d", f"brier_skill_{horizon}d", f"ece_{horizon}d")
        table.add_row(f"{horizon} d", *(_format_interval(judged.figures[name], 4) for name in names))
    table.add_section()
    for one in judged.reliability.get(30, ()):
        table.add_row(
            f"{one.low:g}-{one.high:g}",
            f"said {_format_percent(one.mean_p, 3)}",
            f"came {_format_percent(one.observed, 3)}",
            f"{one.rows:,} rows",
        )
    return table


def _build_life_table(judged: ForecastFigures) -> Table:
    table = _create_table(
        f"Life expectancy of {judged.name}", "figure", "estimate", "aim", "rows", "drives", "failed"
    )
    for name, share in judged.life.items():
        aim = AIMS[name.rpartition("_")[0]]
        told = (
            _format_interval(judged.figures[name])
            if share.is_evidence
            else f"{_format_number(share.estimate)} (no evidence)"
        )
        table.add_row(name, told, f"{aim:.2f}", f"{share.rows:,}", f"{share.drives:,}", f"{share.events:,}")
    for name, figure in judged.figures.items():
        if name.startswith("concordance"):
            table.add_row(name, _format_interval(figure))
    return table


def _build_strata_table(report: Report) -> Table:
    judged = report.judged[0]
    table = _create_table(f"Strata of {judged.name}", "stratum", "failures", *(
        f"{what} at {shown}" for shown in POINTS.values() for what in ("recall", "FAR")))  # fmt: skip
    for name, failures in report.failures_by_stratum.items():
        if not failures:
            continue
        cells = [
            cell
            for point in POINTS
            for cell in (
                _format_interval(judged.figures[f"recall[{name}]_at_{point}"]),
                _format_percent(judged.false_alarms[point][name]),
            )
        ]
        table.add_row(name, f"{failures:,}" + ("" if failures >= EVIDENCE else " (no evidence)"), *cells)
    return table


def _build_differences_table(name: str, differences: Mapping[str, BootstrapInterval]) -> Table:
    table = _create_table(f"Less {name}, on the same resamples", "figure", "difference", "")
    for figure, difference in differences.items():
        table.add_row(
            figure, _format_interval(difference, signed=True), "real" if difference.excludes_zero else ""
        )
    return table


def _describe_truncation(cut: Truncation) -> Iterator[str]:
    if not cut.differences:
        yield f"Truncation: equal on {cut.rows:,} rows."
        return
    yield f"Truncation: {len(cut.differences):,} differences on {cut.rows:,} rows; later days were seen:"
    yield from cut.differences[:SHOWN]
    if len(cut.differences) > SHOWN:
        yield f"and {len(cut.differences) - SHOWN:,} more."


def _create_table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column(columns[0], overflow="fold")
    for column in columns[1:]:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _format_interval(figure: BootstrapInterval, digits: int = 3, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    if math.isnan(figure.value):
        return "-"
    if math.isnan(figure.low):
        return f"{figure.value:{sign}.{digits}f}"
    value, low, high = (f"{number:{sign}.{digits}f}" for number in (figure.value, figure.low, figure.high))
    return f"{value} [{low}, {high}]"


def _format_number(value: float, digits: int = 3) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _format_percent(value: float, digits: int = 2) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.{digits}f} %"
