"""`predrain report`: what predrain did in one month."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlencode

from cyclopts import Parameter

from predrain.service.cli.row_tables import AsCsv, Column, Row, require_one_form, write_csv
from predrain.service.cli.shared_options import (
    HERE,
    AsJson,
    ServiceAddress,
    escape_to_one_line,
    format_binary_size,
    make_console,
    print_json,
)

if TYPE_CHECKING:
    from rich.table import Table

_ENTRY_COLUMNS: Final = (
    Column("at", "", lambda row: row["at"], unit="UTC"),
    Column("kind", "", lambda row: row["kind"]),
    Column("host", "", lambda row: row["host"]),
    Column("osd", "", lambda row: row["osd"], number=True),
    Column("id", "", lambda row: row["device"]),
    Column("drain", "", lambda row: row["drain"]),
    Column("intent", "", lambda row: row["intent"]),
    Column("moved", "", lambda row: row["moved_bytes"], unit="bytes", number=True),
    Column("called", "", lambda row: row["called_days"], unit="days", number=True),
    Column("above_limit", "", lambda row: row["hours_above"], unit="hours", number=True),
    Column("measured", "", lambda row: row["hours_measured"], unit="hours", number=True),
    Column("sentence", "", lambda row: row["sentence"]),
)


def show_report_command(
    month: Annotated[
        str, Parameter(help="A month, such as 2026-10; the last month that is over where it is left out.")
    ] = "",
    /,
    *,
    where: ServiceAddress = HERE,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> int:
    """Show what predrain did in a month: drives swapped empty, failures, false alarms, bytes, hours of slow clients.

    Example: predrain report 2026-10 --csv > october.csv
    """
    require_one_form(as_csv=as_csv, as_json=as_json)
    report = where.client().get(f"report?{urlencode({'month': month})}" if month else "report")
    if as_json:
        print_json(report)
    elif as_csv:
        write_csv(report["entries"], _ENTRY_COLUMNS)
    else:
        console = make_console()
        console.print(_build_number_table(report))
        if report["entries"]:
            console.print(_build_entry_table(report["entries"]))
    return 0


def _build_number_table(report: Row) -> Table:
    from rich.table import Table

    since, until = (datetime.fromisoformat(report[name]) for name in ("since", "until"))
    table = Table(box=None, show_header=False, title=f"{since:%Y-%m-%d} to {until:%Y-%m-%d %H:%M} UTC")
    table.title_justify = "left"
    if not report["whole"]:
        table.caption = "The month is not over, or predrain has no history of its begin."
        table.caption_justify = "left"
    measured, above = report["hours_measured"], report["hours_above"]
    latency = "not measured" if measured is None else f"{above:.1f} of {measured:.1f} h"
    for name, value in (
        ("drives swapped empty, before they failed", report["swapped_empty"]),
        ("drives that failed", report["failures"]),
        ("  of these empty already", report["failed_empty"]),
        ("  of these while they were drained", report["failed_while_draining"]),
        ("  of these after a warning, undrained", report["failed_called"]),
        ("  of these without any warning (missed)", report["missed"]),
        ("false alarms (bad, then withdrawn)", report["false_alarms"]),
        ("drains and fills that ended", report["drains"]),
        ("data that they moved", format_binary_size(report["moved_bytes"])),
        (f"drains with latency above {report['latency_limit']:g} times the hour before", latency),
    ):
        table.add_row(name, str(value))
    return table


def _build_entry_table(entries: list[Row]) -> Table:
    from rich.table import Table

    table = Table("time, UTC", "host", "disk", "what happened", box=None)
    for entry in entries:
        text = entry["sentence"]
        if entry["moved_bytes"] is not None:
            text += f" {format_binary_size(entry['moved_bytes'])} moved."
        osd = None if entry["osd"] is None else f"osd.{entry['osd']}"
        table.add_row(
            f"{datetime.fromisoformat(entry['at']):%Y-%m-%d %H:%M}",
            escape_to_one_line(entry["host"] or ""),
            escape_to_one_line(osd or entry["device"] or ""),
            text,
        )
    return table
