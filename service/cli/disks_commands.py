"""`predrain disks`: every disk, with its state, its severity and its slot."""

from __future__ import annotations

import urllib.parse
from datetime import datetime
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table

from predrain.data.life_cycle import LifeState
from predrain.data.refusal import Refusal
from predrain.service.cli.shared_options import (
    HERE,
    AsJson,
    ServiceAddress,
    escape_to_one_line,
    make_console,
    print_json,
)
from predrain.service.terminal.service_connection import CliClient, Json

_PAGE = 10_000
_ENDS = frozenset({LifeState.DRAINED, LifeState.FAILED, LifeState.RETIRED})


class BadSlot(Refusal):
    """The text that was given as a slot names no OSD."""


def list_disks_command(
    *,
    life: Annotated[
        LifeState | None, Parameter(help="Only disks in this state, such as `retired` or `draining`.")
    ] = None,
    slot: Annotated[
        str,
        Parameter(
            help="Only the disks that stand and stood in the slot of an OSD (osd.N), and what became of each."
        ),
    ] = "",
    where: ServiceAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """List every disk with its state, its severity, and the OSDs and the host where it stands.

    A disk that failed or is retired has no severity.

    Example: predrain disks --life retired
    """
    if slot:
        return _show_slot(where.client(), slot, as_json=as_json)
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
        table.add_row(*map(escape_to_one_line, shown))
    make_console().print(table)
    return 0


def _show_slot(client: CliClient, slot: str, *, as_json: bool) -> int:
    number = slot.removeprefix("osd.")
    if not (number.isascii() and number.isdigit()):
        raise BadSlot(f"{slot!r} is no OSD; give osd.12")
    told = client.get(f"slots/{number}")
    if as_json:
        print_json(told)
        return 0
    print(
        f"{escape_to_one_line(told['device'] or 'no disk that is known')} stands in the slot of osd.{told['osd']}"
    )
    table = Table("disk", "from, UTC", "until, UTC", "state", "severity", "what became of it", box=None)
    for one in told["disks"]:
        became = [change["sentence"] for change in reversed(one["changes"]) if change["state"] in _ENDS]
        shown = (
            one["device"],
            _format_time(one["since"], "before the record"),
            _format_time(one["until"], "now"),
            one["state"].replace("_", " "),
            one["severity"] or "",
            " ".join(became),
        )
        table.add_row(*map(escape_to_one_line, shown))
    make_console().print(table)
    return 0


def _format_time(text: str | None, otherwise: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M}" if text is not None else otherwise


def _all_disks(client: CliClient) -> list[Json]:
    found: list[Json] = []
    cursor = ""
    while True:
        page = client.get(f"devices?limit={_PAGE}{cursor}")
        found += page["items"]
        if page["next"] is None:
            return found
        cursor = f"&cursor={urllib.parse.quote(page['next'], safe='')}"
