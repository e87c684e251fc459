"""Tables of the report for a terminal: those that the judge's own tables do not hold."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.table import Table

from predrain.models.backtest.trial import BacktestPlan, FleetTrial
from predrain.models.report.left_out import left_out_tables
from predrain.models.report.steps import step_tables


def further_lines(fleet: FleetTrial, plan: BacktestPlan) -> Iterator[Table]:
    """Other landmarks over the same days, and drives that were not learned from."""
    for one in [*step_tables(fleet, plan), *left_out_tables(fleet)]:
        table = Table(title=one.caption, title_justify="left", box=box.SIMPLE_HEAD)
        for place, head in enumerate(one.head):
            table.add_column(head, justify="right" if place else "left", overflow="fold", no_wrap=place > 0)
        for row in one.rows:
            table.add_row(*row)
        yield table
