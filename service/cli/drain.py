"""`predrain drain`: lists, plans, wishes, and what became of them; through the running service, or straight."""

from __future__ import annotations

import sys
import time
import urllib.parse
from datetime import datetime
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column, Table
from rich.text import Text

from service.cli.client import Answered, Client, Json
from service.cli.connect import Reach
from service.cli.options import AsJson, print_json, tebibytes, terminal
from service.cli.planned import print_plan

Intent = Annotated[
    Literal["replace", "remove"],
    Parameter(help="replace: the slot waits for a new disk; remove: the disk goes for good."),
]
HERE = Reach()
DONE, OVER = frozenset({"verified", "handed_over"}), frozenset({"cancelled", "failed"})
STUCK = frozenset({"holding", "paused", "approved"})
PATIENCE_SECONDS = 60.0
"""How long `--wait` watches a drain that holds before it gives up waiting; the drain itself goes on."""


def listing(*, where: Reach = HERE, as_json: AsJson = False) -> int:
    """All drains, newest first.

    Example: predrain drain list
    """
    with where.service() as client:
        items = client.get("drains")["items"]
    if as_json:
        print_json(items)
        return 0
    table = Table("id", "state", "moved", "of", "held by or ended with", box=None)
    for one in items:
        progress = one["progress"]
        told = "; ".join(one["held_by"]) or one["ended_why"] or one["reason"]
        table.add_row(
            one["id"],
            one["state"],
            tebibytes(progress["moved_bytes"]),
            tebibytes(progress["planned_bytes"]),
            told,
        )
    terminal().print(table if items else "no drains")
    return 0


def plan(
    target: str,
    /,
    *,
    intent: Intent = "replace",
    diff: Annotated[bool, Parameter(negative="", help="Every PG's way, line by line.")] = False,
    where: Reach = HERE,
    as_json: AsJson = False,
) -> int:
    """What draining TARGET (`osd.N` or a device id) would do. Nothing is changed.

    Example: predrain drain plan osd.217 --diff
    """
    made = _drafted(where, target, intent)
    print_json(made) if as_json else print_plan(target, made, lines=diff)
    return 3 if made["refusals"] else 0


def apply(
    *targets: str,
    intent: Intent = "replace",
    reason: Annotated[str, Parameter(help="Why; kept in the journal.")] = "",
    yes: Annotated[bool, Parameter(negative="", help="Approve at once what is planned.")] = False,
    wait: Annotated[
        bool, Parameter(negative="", help="Watch until it is drained and verified, or held.")
    ] = False,
    dry_run: Annotated[
        bool, Parameter(negative="", help="Print the plan and its lines, ask for nothing.")
    ] = False,
    spare_reads: Annotated[
        bool, Parameter(negative="", help="Reading the disk hurts clients: it stops leading PGs first.")
    ] = False,
    where: Reach = HERE,
    as_json: AsJson = False,
) -> int:
    """Ask for a drain of each TARGET; with --yes approve it, with --wait watch it.

    Exits with 3 when one was refused or held; why is on stderr.

    Example: predrain drain apply osd.217 --yes --wait
    """
    if not targets:
        print("predrain: say which osd.N or device id to drain", file=sys.stderr)
        return 2
    return asked(
        targets,
        intent,
        reason,
        where,
        yes=yes,
        wait=wait,
        dry_run=dry_run,
        spare_reads=spare_reads,
        as_json=as_json,
    )


def asked(
    targets: tuple[str, ...],
    intent: str,
    reason: str,
    where: Reach,
    *,
    yes: bool,
    wait: bool,
    dry_run: bool,
    spare_reads: bool,
    as_json: bool,
) -> int:
    """Ask for a drain (or a fill) of each target, as the options say; the exit code."""
    if dry_run:
        plans = [_drafted(where, target, intent) for target in targets]
        if as_json:
            print_json(plans)
        else:
            for target, made in zip(targets, plans, strict=True):
                print_plan(target, made, lines=True)
        return 3 if any(made["refusals"] for made in plans) else 0
    drains, refused = [], False
    with where.service(acting=yes and wait) as client:
        for target in targets:
            try:
                body = {"target": target, "intent": intent, "reason": reason, "spare_reads": spare_reads}
                one = client.post("drains", body).body
                drains.append(_approved(client, one) if yes else one)
            except Answered as answer:
                print(f"predrain: {target}: {answer}", file=sys.stderr)
                refused = True
        if wait and yes:
            drains = [_watched(client, one["id"], quiet=as_json) for one in drains]
    if as_json:
        print_json(drains)
    for one in drains:
        if not as_json:
            print(
                f"{one['id']}: {one['state']}"
                + ("" if yes else f"; see its plan, then approve it: predrain drain explain {one['id']}")
            )
        if wait and yes and one["state"] not in DONE:
            why = "; ".join(one["held_by"]) or one["ended_why"] or f"it is {one['state']}"
            print(f"predrain: {one['id']}: {why}", file=sys.stderr)
            refused = True
    return 3 if refused else 0


def _drafted(where: Reach, target: str, intent: str) -> Json:
    query = urllib.parse.urlencode({"target": target, "intent": intent})
    with where.service() as client:
        return client.get(f"plan?{query}")


def approve(
    drain: str,
    /,
    *,
    seen: Annotated[
        str,
        Parameter(help="The plan meant, as `explain` prints it; refused where it is another one by now."),
    ] = "",
    where: Reach = HERE,
    as_json: AsJson = False,
) -> int:
    """Let a proposed drain begin; without --seen on the plan that it has now, which is printed.

    Example: predrain drain approve osd.217-20180412-120000
    """
    with where.service() as client:
        one = client.get(f"drains/{_quoted(drain)}")
        if seen:
            one["etag"] = seen
        approved = _approved(client, one)
    if not (as_json or seen) and approved["plan"]:
        print_plan(approved["id"], approved["plan"])
    return _said(approved, as_json)


def pause(drain: str, /, *, where: Reach = HERE, as_json: AsJson = False) -> int:
    """Hold a drain until it is resumed; PGs in flight arrive.

    Example: predrain drain pause osd.217-20180412-120000
    """
    return _wish(where, drain, "pause", as_json)


def resume(drain: str, /, *, where: Reach = HERE, as_json: AsJson = False) -> int:
    """Let a paused or failed drain go on.

    Example: predrain drain resume osd.217-20180412-120000
    """
    return _wish(where, drain, "resume", as_json)


def cancel(drain: str, /, *, where: Reach = HERE, as_json: AsJson = False) -> int:
    """Give a drain up; weights, upmaps, flags and settings are put back as they were.

    Example: predrain drain cancel osd.217-20180412-120000
    """
    return _wish(where, drain, "cancel", as_json)


def done(drain: str, /, *, where: Reach = HERE, as_json: AsJson = False) -> int:
    """Say that a verified disk may be pulled; prints what is left to do, by cephadm, by Rook or by hand.

    Exits with 1 while a guard refuses.

    Example: predrain drain done osd.217-20180412-120000
    """
    with where.service() as client:
        left = client.post(f"drains/{_quoted(drain)}/hand_over").body
    if as_json:
        print_json(left)
        return 0
    print(f"{left['id']}: {left['state']}. What is left to do:")
    for number, task in enumerate(left["tasks"], 1):
        print(f"{number}. {task['what']}" + (f"\n   {task['command']}" if task["command"] else ""))
    return 0


def explain(
    drain: str,
    /,
    *,
    lines: Annotated[int, Parameter(help="How much of the journal's end.")] = 10,
    where: Reach = HERE,
    as_json: AsJson = False,
) -> int:
    """Where a drain stands, what every guard says, and the end of its journal.

    Example: predrain drain explain osd.217-20180412-120000
    """
    with where.service() as client:
        whole = client.get(f"drains/{_quoted(drain)}")
        whole["journal"] = client.get(f"drains/{_quoted(drain)}/journal?limit={lines}")["items"]
    if as_json:
        print_json(whole)
        return 0
    console, progress = terminal(), whole["progress"]
    console.print(
        Text.assemble(
            (whole["id"], "bold"), f" is {whole['state']}: {whole['reason']} (asked by {whole['asked_by']})"
        )
    )
    console.print(
        f"{progress['moved_pgs']} of {progress['planned_pgs']} PGs, {tebibytes(progress['moved_bytes'])} of "
        f"{tebibytes(progress['planned_bytes'])} moved; "
        f"{progress['in_flight']} PGs in flight of {progress['budget']}{_lasting(whole)}"
    )
    if whole["plan"]:
        print_plan(whole["id"], whole["plan"])
    if whole["state"] == "proposed":
        tag = whole["etag"].strip('"')
        print(f"to approve this plan: predrain drain approve {whole['id']} --seen {tag}")
    guards = Table("guard", "", "what it says", box=None)
    for guard in whole["guards"]:
        guards.add_row(guard["code"], "ok" if guard["ok"] else Text("refuses", "bold"), guard["sentence"])
    console.print(guards)
    journal = Table(Column("at", no_wrap=True), "decided, answered, by whom; seen", box=None)
    for line in whole["journal"]:
        journal.add_row(f"{datetime.fromisoformat(line['at']):%Y-%m-%d %H:%M:%S}Z", _journalled(line))
    console.print(journal)
    return 0


def _lasting(one: Json) -> str:
    if one["took_hours"] is not None:
        return f"; it took {one['took_hours']:.1f} h"
    return "" if one["left_hours"] is None else f"; about {one['left_hours']:.1f} h left, if nothing holds it"


def _journalled(line: Json) -> Text:
    told = Text(": ".join(filter(None, (line["decided"], line["answered"]))))
    if line["caller"]:
        told.append(f" ({line['caller']})")
    if line["seen"]:
        told.append(f"\n{line['seen']}", "dim")
    return told


def _wish(where: Reach, drain: str, wish: str, as_json: bool) -> int:
    with where.service() as client:
        return _said(client.post(f"drains/{_quoted(drain)}/{wish}").body, as_json)


def _approved(client: Client, one: Json) -> Json:
    return client.post(f"drains/{_quoted(one['id'])}/approve", if_match=one["etag"]).body


def _said(one: Json, as_json: bool) -> int:
    print_json(one) if as_json else print(f"{one['id']}: {one['state']}")
    return 0


def _watched(client: Client, drain: str, *, quiet: bool) -> Json:
    """The drain once it is done, over, or has not moved for a while although it should."""
    last, shown, since = None, "", time.monotonic()
    console = terminal(stderr=True, quiet=quiet)
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[now]}", markup=False)
    with Progress(*columns, console=console) as bar:
        row = bar.add_task(drain, total=None, now="")
        while True:
            one = client.get(f"drains/{_quoted(drain)}")
            progress = one["progress"]
            now = (one["state"], progress["moved_pgs"], progress["in_flight"])
            if now != last:
                last, since = now, time.monotonic()
            if (told := _told(one)) != shown:
                shown = told
                bar.update(
                    row, total=progress["planned_pgs"] or None, completed=progress["moved_pgs"], now=told
                )
                if not console.is_terminal:
                    console.print(f"{drain}: {told}", soft_wrap=True)
            waited = time.monotonic() - since > PATIENCE_SECONDS
            if one["state"] in DONE | OVER or (waited and (one["state"] in STUCK or one["held_by"])):
                return one
            time.sleep(1.0)


def _told(one: Json) -> str:
    progress = one["progress"]
    moved, of = tebibytes(progress["moved_bytes"]), tebibytes(progress["planned_bytes"])
    held = f"; held: {one['held_by'][0]}" if one["held_by"] else ""
    return (
        f"{one['state']}, {progress['moved_pgs']} of {progress['planned_pgs']} PGs, {moved} of {of}, "
        f"{progress['in_flight']} in flight{held}"
    )


def _quoted(drain: str) -> str:
    return urllib.parse.quote(drain, safe="")
