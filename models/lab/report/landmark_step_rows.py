"""The same days judged at landmarks that lie closer together or farther apart, as rows for page and terminal."""

from __future__ import annotations

from predrain.models.evaluate.bootstrap import ForecastFigures, Report
from predrain.models.lab.backtest.backtest_plan import BacktestPlan, FleetTrial
from predrain.models.lab.report.report_tables import TableText
from predrain.models.lab.report.report_texts import format_share, tell_points


def step_tables(fleet: FleetTrial, plan: BacktestPlan) -> list[TableText]:
    """Return one table with a row for each forecaster and distance between landmarks; none if only one distance was
    judged."""
    if not fleet.also_every:
        return []
    reports = {plan.every: fleet.report} | dict(fleet.also_every)
    return [
        TableText(
            "The same days at other landmarks",
            (
                "",
                "failures",
                "recall at 0.1 %",
                "ours\nless this",
                "recall at 1 %",
                "ours\nless this",
                "PR-AUC",
            ),
            [
                _list_figures(f"{_name_step(days)}: {one.name}", report, one)
                for days, report in sorted(reports.items())
                for one in report.judged
            ],
        )
    ]


def _name_step(days: int) -> str:
    return {1: "daily", 7: "weekly"}.get(days, f"every {days} d")


def _list_figures(name: str, report: Report, one: ForecastFigures) -> list[str]:
    less = report.judged[0].less_baseline.get(one.name, {})
    cells = [name, f"{report.counts.failures:,}"]
    for figure in ("recall_at_0.1pct", "recall_at_1pct"):
        cells += [format_share(one.figures[figure]), tell_points(less[figure]) if figure in less else "–"]
    return [*cells, f"{one.figures['pr_auc'].value:.3f}"]
