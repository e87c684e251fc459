"""The page: a summary first, then pictures, then tables, then the data on which it is based."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from predrain.data.history import describe_files
from predrain.models.lab.backtest.backtest_plan import Backtest, BacktestPlan, FleetTrial
from predrain.models.lab.report import report_tables
from predrain.models.lab.report.charts import Chart, bytes_chart, draw_charts
from predrain.models.lab.report.landmark_step_rows import step_tables
from predrain.models.lab.report.left_out_rows import left_out_tables
from predrain.models.lab.report.report_tables import TableText
from predrain.models.lab.report.report_texts import describe_leakage_check, format_long_date, summarize_fleet

if TYPE_CHECKING:
    from jinja2 import Environment


def render_template(name: str, **values: object) -> str:
    """Render the template `name`. A value that is missing is an error."""
    return _load_environment().get_template(name).render(values)


@cache
def _load_environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # the tables of a terminal need no Jinja2

    return Environment(
        loader=PackageLoader("predrain.models.lab.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@dataclass(frozen=True, slots=True)
class Bytes:
    """The value of the forecast under a drain policy, with a line for each cost of a failure."""

    head: str
    """One sentence that says what was replayed."""
    settings: Sequence[str]
    safe: Sequence[float]
    """Share of the failing drives' bytes that was safe in time, in [0, 1]; NaN is unknown."""
    nothing: Sequence[float]
    """Bytes moved for nothing in 30 days, for each byte on living drives; NaN is unknown."""
    columns: Sequence[str]
    cells: Sequence[Sequence[str]]
    """(settings, columns) cells for people."""
    chosen: int
    """The index of the policy's own setting."""


@dataclass(frozen=True, slots=True)
class CostBenefitSection:
    """The value of the forecast, as the page shows it."""

    head: str
    charts: Sequence[Chart]
    table: TableText


@dataclass(frozen=True, slots=True)
class FleetSection:
    """One fleet, as the page shows it."""

    title: str
    summary: Sequence[str]
    worth: CostBenefitSection | None
    charts: Sequence[Chart]
    tables: Sequence[TableText]
    left_out_tables: Sequence[TableText]
    basis: str
    notes: Sequence[str]


def render_backtest_page(backtest: Backtest, worth: Mapping[str, Bytes]) -> str:
    """Render the whole report as HTML. worth: fleet's name -> value in bytes, if a policy was replayed."""
    return render_template(
        "page.html.jinja",
        method=[_describe_method(backtest), describe_leakage_check(backtest)],
        left_out=backtest.left_out,
        fleets=[
            _build_fleet_section(fleet, backtest.plan, worth.get(fleet.fleet.name))
            for fleet in backtest.fleets
        ],
    )


def _describe_method(backtest: Backtest) -> str:
    plan = backtest.plan
    wait = f"{plan.embargo} days of embargo, then " if plan.embargo else ""
    return (
        f"At each split the recipe was trained on what was known on that day; {wait}{plan.judge_days} days were "
        f"judged, a landmark every {plan.every} days, on histories that do not tell who failed. Intervals are "
        f"2.5 to 97.5 % of {plan.resamples:,} resamples of the drives (seed {plan.seed})."
    )


def _build_fleet_section(fleet: FleetTrial, plan: BacktestPlan, worth: Bytes | None) -> FleetSection:
    counts = fleet.report.counts
    return FleetSection(
        title=describe_files(fleet.fleet.readings),
        summary=list(summarize_fleet(fleet)),
        worth=_build_cost_benefit_section(worth) if worth else None,
        charts=list(draw_charts(fleet)),
        tables=[
            report_tables.tabulate_ranking(fleet),
            report_tables.tabulate_differences(fleet),
            report_tables.tabulate_own_alarms(fleet),
            report_tables.tabulate_origins(fleet),
            report_tables.tabulate_strata(fleet, models=True),
            report_tables.tabulate_strata(fleet, models=False),
            report_tables.tabulate_life_expectancies(fleet),
            *step_tables(fleet, plan),
        ],
        left_out_tables=left_out_tables(fleet),
        basis=(
            f"{counts.drives:,} drives at risk on {counts.landmarks} landmarks from "
            f"{format_long_date(counts.first_landmark)} to {format_long_date(counts.last_landmark)}; "
            f"{counts.rows:,} rows with a known outcome, {counts.positive_rows:,} of them of drives about to fail; "
            f"{counts.windows:,} healthy windows; {counts.censored:,} rows censored."
        ),
        notes=[f"{peer}: {note}." for peer, note in fleet.notes.items()],
    )


def _build_cost_benefit_section(worth: Bytes) -> CostBenefitSection:
    known = [
        n
        for n in range(len(worth.settings))
        if worth.safe[n] == worth.safe[n] and worth.nothing[n] == worth.nothing[n]
    ]
    charts: list[Chart] = []
    if worth.chosen in known:
        svg = bytes_chart(
            [_shorten_setting(worth.settings[n]) for n in known],
            [100 * worth.nothing[n] for n in known],
            [100 * worth.safe[n] for n in known],
            known.index(worth.chosen),
        )
        caption = (
            "One dot for each cost of a failure: a quarter to four times of what the policy sets (the large dot is as "
            "it is set). Up and left is better."
        )
        charts.append(Chart("What a cost of a failure brings about", caption, svg))
    rows = [(name, *cells) for name, cells in zip(worth.settings, worth.cells, strict=True)]
    return CostBenefitSection(
        worth.head, charts, TableText("By cost of a failure", ("", *worth.columns), rows)
    )


def _shorten_setting(notch: str) -> str:
    return notch.removeprefix("thresholds ").removesuffix(" of healthy windows")
