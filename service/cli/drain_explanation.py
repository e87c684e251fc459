"""One drain on the terminal: where it stands, what was read of its disk, what every guard says, its journal's end."""

from __future__ import annotations

from datetime import datetime

from rich.table import Column, Table
from rich.text import Text

from predrain.actions.core.messages import describe_estimate, describe_hours, describe_lost
from predrain.data.way_out import WayOut
from predrain.service.cli.drain_progress import read_state_text
from predrain.service.cli.plan_text import print_plan
from predrain.service.cli.shared_options import escape_to_one_line, format_binary_size, make_console
from predrain.service.terminal.service_connection import Json


def print_drain(whole: Json, acting: str | None) -> None:
    """whole: as `GET drains/ID` answers, with the end of its journal. acting: who acts on drains, as a sentence."""
    console, progress = make_console(), whole["progress"]
    console.print(
        Text.assemble(
            (whole["id"], "bold"),
            f" is {read_state_text(whole)}: {whole['reason']}{_describe_requester(whole)}",
        )
    )
    console.print(
        f"{progress['moved_pgs']} of {progress['planned_pgs']} PGs, {format_binary_size(progress['moved_bytes'])} of "
        f"{format_binary_size(progress['planned_bytes'])} moved; "
        f"{progress['in_flight']} PGs in flight (budget "
        f"{progress['budget']}){_describe_drain_hours(whole)}{_describe_lost_pgs(whole)}"
    )
    for said in whole.get("read_errors", []):
        print(escape_to_one_line(said))
    if whole["plan"]:
        print_plan(whole["id"], whole["plan"])
    if whole["state"] == "proposed":
        tag = whole["etag"].strip('"')
        print(f"to approve this plan: predrain drain approve {whole['id']} --etag {tag}")
    guards = Table("guard", "", "what it says", box=None)
    for guard in whole["guards"]:
        guards.add_row(guard["code"], _describe_guard_verdict(guard), guard["sentence"])
    console.print(guards)
    if said := whole.get("insistence"):
        until = datetime.fromisoformat(said["until"])
        past = f"{', '.join(said['guards'])} until {until:%H:%M} UTC at most"
        print(escape_to_one_line(f"{said['by']} insists past {past}: {said['reason']}"))
    print_ways_out(whole)
    if acting is not None:
        console.print(acting, soft_wrap=True)
    journal = Table(Column("at", no_wrap=True), "decided, answered, by whom; seen", box=None)
    for entry in whole["journal"]:
        journal.add_row(
            f"{datetime.fromisoformat(entry['at']):%Y-%m-%d %H:%M:%S}Z", _format_journal_entry(entry)
        )
    console.print(journal)


def print_ways_out(one: Json) -> None:
    """The ways out of a drain, each with the command that takes it."""
    for open_way in one.get("ways_out", []):
        print(escape_to_one_line(f"way out: {open_way['sentence']}"))
        if command := _name_command(WayOut(open_way["way"]), one["id"]):
            print(f"  {command}")


def _name_command(way: WayOut, drain: str) -> str:
    match way:
        case WayOut.MAKE_ROOM:
            return ""
        case WayOut.CANCEL:
            return f"predrain drain cancel {drain}"
        case _:
            return f"predrain drain way-out {drain} {way.replace('_', '-')}"


def _describe_guard_verdict(guard: Json) -> str | Text:
    if guard["ok"]:
        return "ok"
    if guard.get("overruled"):
        return Text("overruled", "bold")
    return Text("refuses, a person may insist" if guard.get("insistable") else "refuses", "bold")


def _describe_requester(one: Json) -> str:
    """Return the requester of a drain, or "" if the reason names them. Without a reason of the person's own, predrain's
    reason names the requester.
    """
    return "" if one["requested_by"] in one["reason"] else f" (asked by {one['requested_by']})"


def _describe_lost_pgs(one: Json) -> str:
    lost = one["progress"].get("lost_pgs")
    return f"; {describe_lost(lost)}" if lost else ""


def _describe_drain_hours(one: Json) -> str:
    if one["duration_hours"] is not None:
        return f"; it took {describe_hours(one['duration_hours'])}"
    return (
        ""
        if one["remaining_hours"] is None
        else f"; {describe_estimate(one['remaining_hours'])} left, if nothing holds it"
    )


def _format_journal_entry(entry: Json) -> Text:
    told = Text(": ".join(filter(None, (entry["decision"], entry["result"]))))
    if entry["caller"]:
        told.append(f" ({entry['caller']})")
    if entry["observed"]:
        told.append(f"\n{entry['observed']}", "dim")
    return told
