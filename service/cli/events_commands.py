"""`predrain events`: what happened to disks, OSDs and drains, newest first."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

from cyclopts import Parameter
from cyclopts.validators import Number

from predrain.data.refusal import Refusal
from predrain.service.cli.row_tables import AsCsv, Column, require_one_form, write_csv
from predrain.service.cli.shared_options import (
    HERE,
    AsJson,
    ServiceAddress,
    escape_to_one_line,
    make_console,
    print_json,
)
from predrain.service.terminal.service_connection import CliClient, Json

if TYPE_CHECKING:
    from rich.table import Table

_AGES = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_AGE = re.compile(r"(\d{1,4})([hdw])", re.ASCII)
_PAGE = 500
"""The most events of one request."""
_EVENT_COLUMNS = (
    Column("at", "", lambda row: row["at"], unit="UTC"),
    Column("kind", "", lambda row: row["kind"]),
    Column("host", "", lambda row: row["host"]),
    Column("osd", "", lambda row: row["osd"], number=True),
    Column("id", "", lambda row: row["device"]),
    Column("drain", "", lambda row: row["drain"]),
    Column("sentence", "", lambda row: row["sentence"]),
)


class BadTime(Refusal):
    """A time that is neither an age nor a date."""


def list_events_command(
    text: Annotated[str, Parameter(help="Words that the sentence of an event must all contain.")] = "",
    /,
    *,
    since: Annotated[
        str, Parameter(help="From when on: an age (12h, 7d, 4w) or a date (2026-03-01).")
    ] = "7d",
    until: Annotated[
        str, Parameter(help="Until when, in the same form; until now where it is left out.")
    ] = "",
    kind: Annotated[
        tuple[str, ...],
        Parameter(
            negative="",
            help="Only events of this kind: osd, disk, outlook, drain, halt, controller, or osd_down and the like.",
        ),
    ] = (),
    host: Annotated[str, Parameter(help="Only events of this host.")] = "",
    disk: Annotated[str, Parameter(help="Only events of this disk: a device id or osd.N.")] = "",
    limit: Annotated[int, Parameter(help="The newest so many events.", validator=Number(gte=1))] = 200,
    where: ServiceAddress = HERE,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> int:
    """List what happened, newest first: OSDs down and up, disks failed and replaced, outlooks, drains, halts.

    Example: predrain events --since 7d --kind disk --host stor-21 failed
    """
    require_one_form(as_csv=as_csv, as_json=as_json)
    client = where.client()
    now = datetime.fromisoformat(client.get("status")["now"])
    asked: dict[str, str | list[str]] = {"since": read_time(since, now).isoformat(), "kind": list(kind)}
    if until:
        asked["until"] = read_time(until, now).isoformat()
    asked |= {name: value for name, value in (("host", host), ("disk", disk), ("q", text)) if value}
    found, more = _read_pages(client, asked, limit)
    if as_json:
        print_json({"items": found, "more": more})
        return 0
    if as_csv:
        write_csv(found, _EVENT_COLUMNS)
        return 0
    if not found:
        print(f"nothing of that is known since {read_time(since, now):%Y-%m-%d %H:%M} UTC")
        return 0
    make_console().print(_build_event_table(found))
    if more:
        print(f"there are older ones: --limit {2 * limit}, or a shorter --since")
    return 0


def read_time(text: str, now: datetime) -> datetime:
    """The time that an age before `now` or a date names; a date without an offset is UTC. Raises BadTime."""
    if age := _AGE.fullmatch(text):
        return now - int(age[1]) * _AGES[age[2]]
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise BadTime(
            f"{text!r} is neither an age nor a date; give 12h, 7d, 4w, or a date such as 2026-03-01"
        ) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _read_pages(client: CliClient, asked: dict[str, str | list[str]], limit: int) -> tuple[list[Json], bool]:
    """Return the newest events, and whether older matching ones exist."""
    found: list[Json] = []
    cursor: str | None = None
    while True:
        page = {"limit": str(min(_PAGE, limit - len(found)))} | ({"cursor": cursor} if cursor else {})
        answer = client.get(f"history?{urlencode({**asked, **page}, doseq=True)}")
        found += answer["items"]
        cursor = answer["next"]
        if cursor is None or len(found) >= limit:
            return found, cursor is not None


def _build_event_table(found: list[Json]) -> Table:
    from rich.table import Table

    table = Table("time, UTC", "host", "what happened", box=None)
    for event in found:
        at = datetime.fromisoformat(event["at"])
        table.add_row(
            f"{at:%Y-%m-%d %H:%M}",
            escape_to_one_line(event["host"] or ""),
            escape_to_one_line(event["sentence"]),
        )
    return table
