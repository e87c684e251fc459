"""One drain on the terminal: where it stands, what was read of its disk, what every guard says, its journal's end."""

from __future__ import annotations

from datetime import datetime

from rich.table import Column, Table
from rich.text import Text

from predrain.actions.core.messages import describe_estimate, describe_hours, describe_lost
from predrain.data.way_out import WayOut
from predrain.service.cli.client import Json
from predrain.service.cli.options import line, tebibytes, terminal
from predrain.service.cli.planned import print_plan
from predrain.service.cli.watching import read_state_text


def print_drain(whole: Json, acting: str | None) -> None:
    """whole: as `GET drains/ID` answers, with the end of its journal. acting: who acts on drains, as a sentence."""
    console, progress = terminal(), whole["progress"]
    console.print(
        Text.assemble(
            (whole["id"], "bold"),
            f" is {read_state_text(whole)}: {whole['reason']}{_asker(whole)}",
        )
    )
    console.print(
        f"{progress['moved_pgs']} of {progress['planned_pgs']} PGs, {tebibytes(progress['moved_bytes'])} of "
        f"{tebibytes(progress['planned_bytes'])} moved; "
        f"{progress['in_flight']} PGs in flight (budget {progress['budget']}){_lasting(whole)}{_lost(whole)}"
    )
    for said in whole.get("read_errors", []):
        print(line(said))
    if whole["plan"]:
        print_plan(whole["id"], whole["plan"])
    if whole["state"] == "proposed":
        tag = whole["etag"].strip('"')
        print(f"to approve this plan: predrain drain approve {whole['id']} --seen {tag}")
    guards = Table("guard", "", "what it says", box=None)
    for guard in whole["guards"]:
        guards.add_row(guard["code"], _verdict(guard), guard["sentence"])
    console.print(guards)
    if said := whole.get("insistence"):
        until = datetime.fromisoformat(said["until"])
        past = f"{', '.join(said['guards'])} until {until:%H:%M} UTC at most"
        print(line(f"{said['by']} insists past {past}: {said['reason']}"))
    print_ways_out(whole)
    if acting is not None:
        console.print(acting, soft_wrap=True)
    journal = Table(Column("at", no_wrap=True), "decided, answered, by whom; seen", box=None)
    for entry in whole["journal"]:
        journal.add_row(f"{datetime.fromisoformat(entry['at']):%Y-%m-%d %H:%M:%S}Z", _journalled(entry))
    console.print(journal)


def print_ways_out(one: Json) -> None:
    """The ways out of a drain, each with the command that takes it."""
    for open_way in one.get("ways_out", []):
        print(line(f"way out: {open_way['sentence']}"))
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


def _verdict(guard: Json) -> str | Text:
    if guard["ok"]:
        return "ok"
    if guard.get("overruled"):
        return Text("overruled", "bold")
    return Text("refuses, a person may insist" if guard.get("insistable") else "refuses", "bold")


def _asker(one: Json) -> str:
    """Who asked, where the reason does not say so itself: without a reason of the person's it is who asked."""
    return "" if one["asked_by"] in one["reason"] else f" (asked by {one['asked_by']})"


def _lost(one: Json) -> str:
    lost = one["progress"].get("lost_pgs")
    return f"; {describe_lost(lost)}" if lost else ""


def _lasting(one: Json) -> str:
    if one["took_hours"] is not None:
        return f"; it took {describe_hours(one['took_hours'])}"
    return (
        ""
        if one["left_hours"] is None
        else f"; {describe_estimate(one['left_hours'])} left, if nothing holds it"
    )


def _journalled(entry: Json) -> Text:
    told = Text(": ".join(filter(None, (entry["decided"], entry["answered"]))))
    if entry["caller"]:
        told.append(f" ({entry['caller']})")
    if entry["seen"]:
        told.append(f"\n{entry['seen']}", "dim")
    return told
