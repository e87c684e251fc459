"""`predrain cluster list`: the service's own cluster beside the others that it asks."""

from __future__ import annotations

from datetime import datetime

from rich.table import Table

from predrain.service.cli.shared_options import (
    HERE,
    AsJson,
    ServiceAddress,
    escape_to_one_line,
    make_console,
    print_json,
)
from predrain.service.terminal.service_connection import Json

_NOT_REPORTED = "not reported"


def list_clusters_command(*, where: ServiceAddress = HERE, as_json: AsJson = False) -> int:
    """List the service's own cluster and the other clusters of `[clusters]`, with their disks and drains.

    Example: predrain cluster list
    """
    told = where.client().get("clusters")
    if as_json:
        print_json(told)
        return 0
    table = Table("cluster", "health", "OSDs", "disks read", "bad", "warning", "drains", "answered", box=None)
    _add_row(table, told["own"], told["own"]["cluster"], "this service")
    for other in told["others"]:
        at = other["answered_at"]
        answered = f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M} UTC" if at else "never"
        if other["refused"]:
            answered += f"; {other['refused']}"
        overview = other["overview"]
        _add_row(table, overview, overview["cluster"] if overview else other["url"], answered)
    make_console().print(table)
    return 0


def _add_row(table: Table, overview: Json | None, name: str, answered: str) -> None:
    if overview is None:
        shown = (name, *(_NOT_REPORTED,) * 6, answered)
    else:
        halted = ", halted" if overview["halted"] else ""
        shown = (
            name,
            f"{overview['health'] or _NOT_REPORTED}{halted}",
            str(overview["osds"]),
            f"{overview['fresh']} of {overview['disks']}",
            str(overview["bad"]),
            str(overview["warning"]),
            str(overview["drains"]),
            answered,
        )
    table.add_row(*map(escape_to_one_line, shown))
