"""`predrain doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from service.cli.options import AsJson, print_json
from service.settings import load

MARKS = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "wrong": "[red]wrong[/]"}


def doctor(
    *,
    state: Annotated[Path | None, Parameter(help="State directory of the service.")] = None,
    config: Annotated[Path | None, Parameter(help="Settings file.")] = None,
    as_json: AsJson = False,
) -> int:
    """Look at settings, state, bundle, page and the running service; say what is wrong and the cure.

    Exits with 1 when something is wrong. Nothing is changed.

    Example: predrain doctor
    """
    from service.cli.examination import examine

    settings = load(config)
    findings = list(examine(settings, state or settings.service.state))
    if as_json:
        print_json([{"what": one.what, "state": one.state, "told": one.told} for one in findings])
    else:
        from rich.console import Console
        from rich.table import Table

        table = Table("", "", "", box=None, show_header=False)
        for one in findings:
            table.add_row(MARKS[one.state], one.what, one.told)
        Console().print(table)
    return 1 if any(one.state == "wrong" for one in findings) else 0
