"""`predrain drain`: lists, plans, wishes, and what became of them; all through the running service."""

from __future__ import annotations

import sys
import time
import urllib.parse
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from service.cli.client import Answered, Client, Json
from service.cli.options import HERE, AsJson, Where, print_json, share, tebibytes

Intent = Literal["replace", "remove"]
DONE, OVER = frozenset({"verified", "handed_over"}), frozenset({"cancelled", "failed"})
STUCK = frozenset({"holding", "paused", "approved"})
PATIENCE_SECONDS = 60.0
"""How long `--wait` watches a drain that holds before it gives up waiting; the drain itself goes on."""


def listing(*, where: Where = HERE, as_json: AsJson = False) -> int:
    """All drains, newest first.

    Example: predrain drain list
    """
    items = where.client().get("drains")["items"]
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
    Console().print(table if items else "no drains")
    return 0


def plan(target: str, /, *, intent: Intent = "replace", where: Where = HERE, as_json: AsJson = False) -> int:
    """What draining TARGET (`osd.N` or a device id) would do. Nothing is changed.

    Example: predrain drain plan osd.217
    """
    query = urllib.parse.urlencode({"target": target, "intent": intent})
    made = where.client().get(f"plan?{query}")
    print_json(made) if as_json else _print_plan(target, made)
    return 3 if made["refusals"] else 0


def apply(
    *targets: str,
    intent: Intent = "replace",
    reason: Annotated[str, Parameter(help="Why; kept in the journal.")] = "",
    yes: Annotated[bool, Parameter(negative="", help="Approve at once what is planned.")] = False,
    wait: Annotated[
        bool, Parameter(negative="", help="Watch until it is drained and verified, or held.")
    ] = False,
    where: Where = HERE,
    as_json: AsJson = False,
) -> int:
    """Ask for a drain of each TARGET; with --yes approve it, with --wait watch it.

    Exits with 3 when one was refused or held; why is on stderr.

    Example: predrain drain apply osd.217 --yes --wait
    """
    if not targets:
        print("predrain: say which osd.N or device id to drain", file=sys.stderr)
        return 2
    client = where.client()
    asked, refused = [], False
    for target in targets:
        try:
            body = {"target": target, "intent": intent, "reason": reason}
            one = client.post("drains", body).body
            asked.append(_approved(client, one) if yes else one)
        except Answered as answer:
            print(f"predrain: {target}: {answer}", file=sys.stderr)
            refused = True
    if wait and yes:
        asked = [_watched(client, one["id"], quiet=as_json) for one in asked]
    if as_json:
        print_json(asked)
    for one in asked:
        if not as_json:
            print(
                f"{one['id']}: {one['state']}"
                + ("" if yes else f"; approve it: predrain drain approve {one['id']}")
            )
        if wait and yes and one["state"] not in DONE:
            why = "; ".join(one["held_by"]) or one["ended_why"] or f"it is {one['state']}"
            print(f"predrain: {one['id']}: {why}", file=sys.stderr)
            refused = True
    return 3 if refused else 0


def approve(drain: str, /, *, where: Where = HERE, as_json: AsJson = False) -> int:
    """Let a proposed drain begin, on the plan that it has now.

    Example: predrain drain approve osd.217-20180412-120000
    """
    client = where.client()
    return _said(_approved(client, client.get(f"drains/{_quoted(drain)}")), as_json)


def pause(drain: str, /, *, where: Where = HERE, as_json: AsJson = False) -> int:
    """Hold a drain until it is resumed; PGs in flight arrive.

    Example: predrain drain pause osd.217-20180412-120000
    """
    return _wish(where, drain, "pause", as_json)


def resume(drain: str, /, *, where: Where = HERE, as_json: AsJson = False) -> int:
    """Let a paused or failed drain go on.

    Example: predrain drain resume osd.217-20180412-120000
    """
    return _wish(where, drain, "resume", as_json)


def cancel(drain: str, /, *, where: Where = HERE, as_json: AsJson = False) -> int:
    """Give a drain up; weights, upmaps, flags and settings are put back as they were.

    Example: predrain drain cancel osd.217-20180412-120000
    """
    return _wish(where, drain, "cancel", as_json)


def explain(drain: str, /, *, lines: int = 10, where: Where = HERE, as_json: AsJson = False) -> int:
    """Where a drain stands, what every guard says, and the end of its journal.

    Example: predrain drain explain osd.217-20180412-120000
    """
    client = where.client()
    whole = client.get(f"drains/{_quoted(drain)}")
    whole["journal"] = client.get(f"drains/{_quoted(drain)}/journal?limit={lines}")["items"]
    if as_json:
        print_json(whole)
        return 0
    console, progress = Console(), whole["progress"]
    console.print(
        f"[bold]{whole['id']}[/] is {whole['state']}: {whole['reason']} (asked by {whole['asked_by']})"
    )
    console.print(
        f"{progress['moved_pgs']} of {progress['planned_pgs']} PGs, {tebibytes(progress['moved_bytes'])} of "
        f"{tebibytes(progress['planned_bytes'])} moved; "
        f"{progress['in_flight']} PGs in flight of {progress['budget']}"
    )
    if whole["plan"]:
        _print_plan(whole["id"], whole["plan"])
    guards = Table("guard", "", "what it says", box=None)
    for guard in whole["guards"]:
        guards.add_row(guard["code"], "ok" if guard["ok"] else "[bold]refuses[/]", guard["sentence"])
    console.print(guards)
    journal = Table("at", "seen", "decided", "answered", "by", box=None)
    for line in whole["journal"]:
        journal.add_row(line["at"], line["seen"], line["decided"], line["answered"], line["caller"])
    console.print(journal)
    return 0


def _wish(where: Where, drain: str, wish: str, as_json: bool) -> int:
    return _said(where.client().post(f"drains/{_quoted(drain)}/{wish}").body, as_json)


def _approved(client: Client, one: Json) -> Json:
    return client.post(f"drains/{_quoted(one['id'])}/approve", if_match=one["etag"]).body


def _said(one: Json, as_json: bool) -> int:
    print_json(one) if as_json else print(f"{one['id']}: {one['state']}")
    return 0


def _watched(client: Client, drain: str, *, quiet: bool) -> Json:
    """The drain once it is done, over, or has not moved for a while although it should."""
    last, since = None, time.monotonic()
    while True:
        one = client.get(f"drains/{_quoted(drain)}")
        progress = one["progress"]
        now = (one["state"], progress["moved_pgs"], progress["in_flight"])
        if now != last:
            last, since = now, time.monotonic()
            if not quiet:
                print(
                    f"{drain}: {one['state']}, {progress['moved_pgs']} of {progress['planned_pgs']} PGs",
                    file=sys.stderr,
                )
        waited = time.monotonic() - since > PATIENCE_SECONDS
        if one["state"] in DONE | OVER or (waited and one["state"] in STUCK):
            return one
        time.sleep(1.0)


def _print_plan(target: str, made: Json) -> None:
    eta = (
        "unknown" if made["eta_hours"] is None else f"about {made['eta_hours']:.1f} h ({made['bottleneck']})"
    )
    print(f"{target}: {made['mechanic']}, since {made['why']}")
    print(f"moves {tebibytes(made['bytes'])} in {made['pgs']} PGs; takes {eta}")
    fullest = "unknown" if made["fullest_osd"] is None else f"osd.{made['fullest_osd']}"
    print(f"fullest target after it: {fullest}, {share(made['fullest_after'])} full")
    print(f"cluster after it: {share(made['cluster_after'])} full")
    for rack in made["targets"]:
        name, size = rack["rack"] or "no rack", tebibytes(rack["bytes"])
        print(f"  {name}: {size} on {rack['osds']} OSDs of {rack['hosts']} hosts")
    for refusal in made["refusals"]:
        print(f"  refused: {refusal}")


def _quoted(drain: str) -> str:
    return urllib.parse.quote(drain, safe="")
