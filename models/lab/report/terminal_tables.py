"""Tables of the report for a terminal, in addition to the judge's own tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.table import Table

from predrain.models.lab.backtest.backtest_plan import BacktestPlan, FleetTrial
from predrain.models.lab.report.landmark_step_rows import step_tables
from predrain.models.lab.report.left_out_rows import left_out_tables


def further_lines(fleet: FleetTrial, plan: BacktestPlan) -> Iterator[Table]:
    """Yield the tables of other landmarks over the same days, and of drives that were not learned from."""
    for one in [*step_tables(fleet, plan), *left_out_tables(fleet)]:
        table = Table(title=one.caption, title_justify="left", box=box.SIMPLE_HEAD)
        for place, head in enumerate(one.head):
            table.add_column(head, justify="right" if place else "left", overflow="fold", no_wrap=place > 0)
        for row in one.rows:
            table.add_row(*row)
        yield table
