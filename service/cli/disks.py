"""`predrain disks`: every disk, with its state, its severity and its slot."""

from __future__ import annotations

import urllib.parse
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table

from data.life_cycle import LifeState
from service.cli.client import Client, Json
from service.cli.options import HERE, AsJson, Where, line, print_json, terminal

_PAGE = 10_000


def disks(
    *,
    life: Annotated[
        LifeState | None, Parameter(help="Only disks in this state, such as `retired` or `draining`.")
    ] = None,
    where: Where = HERE,
    as_json: AsJson = False,
) -> int:
    """List every disk with its state, its severity, and the OSDs and the host where it stands.

    A disk that failed or is retired has no severity.

    Example: predrain disks --life retired
    """
    found = [one for one in _all_disks(where.client()) if life in (None, one["state"])]
    if as_json:
        print_json(found)
        return 0
    table = Table("disk", "state", "severity", "OSDs", "host", box=None)
    for one in found:
        osds = ", ".join(f"osd.{osd}" for osd in one["osds"])
        shown = (
            one["device"],
            one["state"].replace("_", " "),
            one["severity"] or "",
            osds,
            one["host"] or "",
        )
        table.add_row(*map(line, shown))
    terminal().print(table)
    return 0


def _all_disks(client: Client) -> list[Json]:
    found: list[Json] = []
    cursor = ""
    while True:
        page = client.get(f"devices?limit={_PAGE}{cursor}")
        found += page["items"]
        if page["next"] is None:
            return found
        cursor = f"&cursor={urllib.parse.quote(page['next'], safe='')}"
