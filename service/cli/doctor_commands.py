"""`predrain doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from predrain.service.cli.shared_options import AsJson, print_json

MARKS = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "wrong": "[red]wrong[/]"}


def run_doctor_command(
    *,
    state: Annotated[Path | None, Parameter(help="State directory of the service.")] = None,
    config: Annotated[Path | None, Parameter(help="Settings file.")] = None,
    send: Annotated[
        bool, Parameter(negative="", help="Send a test message by every channel that is set.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Look at all that predrain stands on, here and on other machines; say what is wrong and the cure.

    Settings, state, certificate, bundle, service, collectors, Kafka, PostgreSQL, Ceph and the rights held there,
    mail, webhook, clocks. Exits with 1 when something is wrong. Nothing is changed, and nothing sent without --send.

    Example: predrain doctor
    """
    from predrain.data.clock import SystemClock
    from predrain.service.config.settings import load_settings
    from predrain.service.doctor.examination import run_doctor_checks

    settings = load_settings(config)
    findings = run_doctor_checks(settings, state or settings.service.state, SystemClock(), send=send)
    if as_json:
        print_json([{"what": one.what, "state": one.state, "told": one.told} for one in findings])
    else:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table("", "", "", box=None, show_header=False)
        for one in findings:
            table.add_row(MARKS[one.state], one.what, escape(one.told))
        Console().print(table)
    return 1 if any(one.state == "wrong" for one in findings) else 0
