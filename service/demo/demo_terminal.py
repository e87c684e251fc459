"""The demo in the terminal: the progress, as a bar with the day and the counts, and the closing table.

In a file or a pipe, where no bar can move, the progress is a line for every ten days.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table

from predrain.service.app.demo_status import DemoRow
from predrain.service.demo.demo_run import DaySummary

LINE_DAYS: Final = 10
"""Simulated days between two lines of progress where the output is not a terminal."""


class ProgressBar:
    """A context in which the bar is shown."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Bar(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[now]}"), console=console
        )
        self._task = self._bar.add_task("starting", total=None, now="reading the fleet")

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def print_line(self, line: str) -> None:
        """Print a line above the bar."""
        self._console.print(line, highlight=False, soft_wrap=True)

    def day_over(self, told: DaySummary) -> None:
        """Advance the bar, or print the line that is due."""
        now = (
            f"day {told.day} of {told.days}: {told.drains} draining, {told.drained} drained, "
            f"{told.failed} failed"
        )
        self._bar.update(
            self._task, description=f"{told.date:%d %b %Y}", total=told.days, completed=told.day, now=now
        )
        if not self._console.is_terminal and told.day % LINE_DAYS == 0:
            self.print_line(now)

    def table_stands(self, rows: tuple[DemoRow, ...]) -> None:
        """Print the closing table."""
        self._bar.stop()
        shown = Table(title="one seed, twice")
        shown.add_column("")
        shown.add_column("with predrain", justify="right")
        shown.add_column("without", justify="right")
        for row in rows:
            shown.add_row(row.what, _format_cell(row.with_predrain), _format_cell(row.without))
        self._console.print(shown)


def _format_cell(value: str | float | None) -> str:
    return "" if value is None else str(value)
