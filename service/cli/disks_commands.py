"""`predrain disks`: every disk, the most urgent first, and the disks of one slot."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from predrain.data.life_cycle import LifeState
from predrain.data.refusal import Refusal
from predrain.service.cli.disk_rows import DISK_COLUMNS, list_devices, parse_osd_number, rank_disk_urgency
from predrain.service.cli.row_tables import CHOSEN, RowChoice, print_rows
from predrain.service.cli.shared_options import (
    HERE,
    ServiceAddress,
    escape_to_one_line,
    make_console,
    print_json,
)
from predrain.service.terminal.service_connection import CliClient

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
    choice: RowChoice = CHOSEN,
    where: ServiceAddress = HERE,
) -> int:
    """List every disk, the most urgent first: its outlook, its place, its model, size, age and temperature.

    A disk that failed or is retired has no outlook, and its state stands in its place.

    Example: predrain disks --filter severity!=good --sort -temperature
    """
    if slot:
        return _show_slot(where.client(), slot, as_json=choice.as_json)
    found = [one for one in list_devices(where.client()) if life in (None, one["state"])]
    print_rows(found, DISK_COLUMNS, choice, rank_disk_urgency, "no disk is known that is asked for")
    return 0


def _show_slot(client: CliClient, slot: str, *, as_json: bool) -> int:
    number = parse_osd_number(slot)
    if number is None:
        raise BadSlot(f"{slot!r} is no OSD; give osd.12")
    told = client.get(f"slots/{number}")
    if as_json:
        print_json(told)
        return 0
    print(
        f"{escape_to_one_line(told['device'] or 'no disk that is known')} stands in the slot of osd.{told['osd']}"
    )
    from rich.table import Table

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
