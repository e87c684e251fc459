"""`predrain drain`: lists, plans, requests, and what became of them; through the running service, or straight."""

from __future__ import annotations

import sys
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.table import Table

from predrain.data.drain import DrainState
from predrain.service.cli.acting_process_text import (
    acting_in,
    describe_here,
    options_of,
    report_nobody,
    tell_forwarding,
)
from predrain.service.cli.cluster_connection import DrainAddress
from predrain.service.cli.drain_explanation import print_drain
from predrain.service.cli.drain_names import DrainName, find_drain_id
from predrain.service.cli.drain_progress import DONE, OVER, quote_drain_id, read_state_text, watch_drain
from predrain.service.cli.plan_text import print_plan
from predrain.service.cli.request_results import (
    DrainRequestResult,
    approve_drain,
    begin_drain,
    hand_over_drain,
    name_asked,
    report_request,
)
from predrain.service.cli.shared_options import AsJson, format_binary_size, make_console, print_json
from predrain.service.drains.acting_process import ActingPlace
from predrain.service.notifications.cause import CLUSTER_KEYS
from predrain.service.terminal.service_connection import CliClient, Json

Intent = Annotated[
    Literal["replace", "remove"],
    Parameter(help="replace: the slot waits for a new disk; remove: the disk goes for good."),
]
Waiting = Annotated[
    bool,
    Parameter(
        negative="",
        help="Watch until it is over, or held; where no controller runs, this command is the controller meanwhile.",
    ),
]
DrainTarget = Annotated[str, Parameter(help="osd.N, or the device id of a disk.")]
HERE = DrainAddress()


def list_drains_command(*, where: DrainAddress = HERE, as_json: AsJson = False) -> int:
    """All drains, newest first. Exits with 3 where the cluster keeps some that cannot be verified here.

    Example: predrain drain list
    """
    with where.service() as client:
        page = client.get("drains")
        acting = acting_in(page, client)
        # A process that ends with the command shows its problems only here.
        unverified = client.get("forecast")["errors"].get(CLUSTER_KEYS) if client.own else None
    items = page["items"]
    if unverified is not None:
        print(f"predrain: drains of another controller may be missing here: {unverified}", file=sys.stderr)
    if as_json:
        print_json([{**one, "acting": page.get("acting")} for one in items])
        return 0 if unverified is None else 3
    table = Table("id", "state", "moved", "of", "held by or ended with", box=None)
    for one in items:
        progress = one["progress"]
        told = "; ".join(one["held_by"]) or one["end_reason"] or one["reason"]
        table.add_row(
            one["id"],
            read_state_text(one),
            format_binary_size(progress["moved_bytes"]),
            format_binary_size(progress["planned_bytes"]),
            told,
        )
    none = "no drains" if unverified is None else "no drains that can be verified here"
    make_console().print(table if items else none)
    if acting is not None:
        print(describe_here(acting, where))
    return 0 if unverified is None else 3


def plan_drain_command(
    target: DrainTarget,
    /,
    *,
    intent: Intent = "replace",
    diff: Annotated[bool, Parameter(negative="", help="Every PG's way, line by line.")] = False,
    where: DrainAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Print what a drain of TARGET (`osd.N` or a device id) would do. Nothing is changed.

    Example: predrain drain plan osd.217 --diff
    """
    made = _fetch_drain_plan(where, target, intent)
    print_json(made) if as_json else print_plan(target, made, lines=diff)
    return 3 if made["refusals"] else 0


def apply_drain_command(
    *targets: DrainTarget,
    intent: Intent = "replace",
    reason: Annotated[str, Parameter(help="Why; kept in the journal.")] = "",
    yes: Annotated[bool, Parameter(negative="", help="Approve at once what is planned.")] = False,
    wait: Waiting = False,
    dry_run: Annotated[
        bool, Parameter(negative="", help="Print the plan and its lines, ask for nothing.")
    ] = False,
    spare_reads: Annotated[
        bool,
        Parameter(negative="", help="Reading the disk hurts clients: first make it the primary of no PG."),
    ] = False,
    where: DrainAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Ask for a drain of each TARGET; with --yes approve it, with --wait watch it.

    With --yes it goes on with a drain that TARGET has already. Exits with 3 when one was refused or held, or when no
    controller runs that would act on it; why is on stderr.

    Example: predrain drain apply osd.217 --yes --wait
    """
    if not targets:
        print("predrain: say which osd.N or device id to drain", file=sys.stderr)
        return 2
    return request_drains(
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


def fill_osd_command(
    target: DrainTarget,
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; kept in the journal.")] = "",
    yes: Annotated[bool, Parameter(negative="", help="Approve at once what is planned.")] = False,
    wait: Waiting = False,
    dry_run: Annotated[bool, Parameter(negative="", help="Print the plan, ask for nothing.")] = False,
    where: DrainAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Fill a new disk in a drained slot (`osd.N`) a few PGs at a time, under the same guards as a drain.

    The OSD must be up and out; `ceph osd add-noin osd.N` before it starts keeps it out. Exits with 3 when it was
    refused or held, or when no controller runs that would act on it; why is on stderr.

    Example: predrain fill osd.217 --yes --wait
    """
    return request_drains(
        (target,),
        "fill",
        reason,
        where,
        yes=yes,
        wait=wait,
        dry_run=dry_run,
        spare_reads=False,
        as_json=as_json,
    )


def request_drains(
    targets: tuple[str, ...],
    intent: str,
    reason: str,
    where: DrainAddress,
    *,
    yes: bool,
    wait: bool,
    dry_run: bool,
    spare_reads: bool,
    as_json: bool,
) -> int:
    """Ask for a drain (or a fill) of each target, as the options say; the exit code."""
    if dry_run:
        plans = [_fetch_drain_plan(where, target, intent) for target in targets]
        if as_json:
            print_json(plans)
        else:
            for target, made in zip(targets, plans, strict=True):
                print_plan(target, made, lines=True)
        return 3 if any(made["refusals"] for made in plans) else 0
    answered: list[tuple[DrainRequestResult, Json | None]] = []
    with where.service(acting=yes and wait) as client:
        for target in targets:
            body = {"target": target, "intent": intent, "reason": reason, "spare_reads": spare_reads}
            answered.append(begin_drain(client, name_asked(client, where), body, yes=yes))
            report_request(answered[-1][0], as_json=as_json)
        drains = [one for _, one in answered if one is not None]
        if wait and yes:
            drains = [watch_drain(client, one["id"], quiet=as_json) for one in drains]
        again = "fill" if intent == "fill" else "drain apply"
        words = f" --intent {intent}" if intent == "remove" else ""
        command = f"predrain {again} {' '.join(targets)}{words} --yes --wait{options_of(where)}"
        code = _report_unfinished_drains(client, where, drains, DONE, command if wait and yes else "")
    if as_json:
        known = {one["id"]: one for one in drains}
        print_json([{**known.get(one.accepted_as, {}), "request": one.to_json()} for one, _ in answered])
    else:
        for one in drains:
            hint = "" if yes else f"; see its plan, then approve it: predrain drain explain {one['id']}"
            print(f"{one['id']}: {read_state_text(one)}{hint}")
    return 3 if any(request.refused is not None for request, _ in answered) else code


def _report_unfinished_drains(
    client: CliClient, where: DrainAddress, drains: list[Json], wanted: frozenset[str], continuing: str
) -> int:
    """Report on stderr what keeps each drain from its end, and the controller that acts on it from now on. Return the
    exit code.

    continuing: the command that goes on with the drain, if this command waited until the drain was in a state of
    `wanted`.
    """
    if not continuing:
        return 3 if report_nobody(drains, client, where) else 0
    unfinished = [one for one in drains if one["state"] not in wanted]
    for one in unfinished:
        why = "; ".join(one["held_by"]) or one["end_reason"] or f"it is {one['state']}"
        print(f"predrain: {one['id']}: {why}", file=sys.stderr)
        if client.get("halt")["halted"]:
            print("predrain: the halt is lifted by: predrain unhalt", file=sys.stderr)
        acting = acting_in(one, client)
        if acting is None or one["state"] in OVER:
            continue
        if acting.place is ActingPlace.NOWHERE and not acting.why:
            print(
                f"predrain: {one['id']} waits until that has ended, and then nobody goes on with it: this command was "
                f"its controller and ends now. Go on with: {continuing}",
                file=sys.stderr,
            )
        else:
            print(f"predrain: {describe_here(acting, where)}", file=sys.stderr)
    return 3 if unfinished else 0


def _fetch_drain_plan(where: DrainAddress, target: str, intent: str) -> Json:
    query = urllib.parse.urlencode({"target": target, "intent": intent})
    with where.service() as client:
        return client.get(f"plan?{query}")


def approve_drain_command(
    drain: DrainName,
    /,
    *,
    etag: Annotated[
        str,
        Parameter(
            help="The plan meant, as `predrain drain explain` prints it; refused where it is another one by now."
        ),
    ] = "",
    wait: Waiting = False,
    where: DrainAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Let a proposed drain begin; without --etag on the plan that it has now, which is printed.

    Exits with 3 when no controller runs that would act on it.

    Example: predrain drain approve osd.217
    """

    def ask(client: CliClient, id_: str) -> Json:
        one = client.get(f"drains/{quote_drain_id(id_)}")
        if etag:
            one["etag"] = etag
        approved = approve_drain(client, one)
        if not (as_json or etag) and approved["plan"]:
            print_plan(approved["id"], approved["plan"])
        return approved

    return _act_on_drain(where, drain, "approve", ask, as_json, wait=wait)


def reject_drain_command(drain: DrainName, /, *, where: DrainAddress = HERE, as_json: AsJson = False) -> int:
    """Refuse a proposed drain, of which nothing was touched. A drain that was approved is given up by `cancel`.

    DRAIN is its id, or `osd.N`. Exits with 1, and changes nothing, where it was approved before.

    Example: predrain drain reject osd.217
    """
    return post_drain_request(where, drain, "reject", as_json)


def pause_drain_command(drain: DrainName, /, *, where: DrainAddress = HERE, as_json: AsJson = False) -> int:
    """Hold a drain until it is resumed; PGs in flight arrive.

    Example: predrain drain pause osd.217
    """
    return post_drain_request(where, drain, "pause", as_json)


def resume_drain_command(
    drain: DrainName, /, *, wait: Waiting = False, where: DrainAddress = HERE, as_json: AsJson = False
) -> int:
    """Let a paused or failed drain go on.

    Exits with 3 when no controller runs that would act on it.

    Example: predrain drain resume osd.217
    """
    return post_drain_request(where, drain, "resume", as_json, wait=wait)


def cancel_drain_command(
    drain: DrainName, /, *, wait: Waiting = False, where: DrainAddress = HERE, as_json: AsJson = False
) -> int:
    """Give a drain up; weights, upmaps, flags and settings are put back as they were.

    Exits with 3 when no controller runs that would put them back.

    Example: predrain drain cancel osd.217 --wait
    """
    return post_drain_request(where, drain, "cancel", as_json, wait=wait)


def hand_over_drain_command(
    drain: DrainName, /, *, where: DrainAddress = HERE, as_json: AsJson = False
) -> int:
    """Say that a verified disk may be pulled; prints what is left to do, by cephadm, by Rook or by hand.

    Exits with 1 while a guard refuses.

    Example: predrain drain hand-over osd.217
    """
    with where.service() as client:
        one = client.get(f"drains/{quote_drain_id(find_drain_id(client, drain))}")
        request, left = hand_over_drain(client, name_asked(client, where), drain, one)
    report_request(request, as_json=as_json)
    if as_json:
        print_json({**(left or {}), "request": request.to_json()})
    if left is None:
        return 1
    if as_json:
        return 0
    print(f"{left['id']}: {left['state']}. What is left to do:")
    for number, task in enumerate(left["tasks"], 1):
        print(f"{number}. {task['description']}" + (f"\n   {task['command']}" if task["command"] else ""))
    return 0


def explain_drain_command(
    drain: DrainName,
    /,
    *,
    lines: Annotated[int, Parameter(help="The number of lines from the journal's end.")] = 10,
    where: DrainAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Where a drain stands, what every guard says, and the end of its journal.

    Example: predrain drain explain osd.217
    """
    with where.service() as client:
        drain = find_drain_id(client, drain, ended=True)
        whole = client.get(f"drains/{quote_drain_id(drain)}")
        acting = acting_in(whole, client)
        whole["journal"] = client.get(f"drains/{quote_drain_id(drain)}/journal?limit={lines}")["items"]
    if as_json:
        print_json(whole)
        return 0
    print_drain(whole, None if acting is None else describe_here(acting, where))
    return 0


def post_drain_request(
    where: DrainAddress,
    drain: str,
    act: str,
    as_json: bool,
    *,
    wait: bool = False,
    body: Mapping[str, object] | None = None,
) -> int:
    """Send one request about a drain to its route, with `wait` until the drain is over."""

    def ask(client: CliClient, id_: str) -> Json:
        return client.post(f"drains/{quote_drain_id(id_)}/{act}", body).body

    return _act_on_drain(where, drain, act, ask, as_json, wait=wait)


def _act_on_drain(
    where: DrainAddress,
    named: str,
    verb: str,
    ask: Callable[[CliClient, str], Json],
    as_json: bool,
    *,
    wait: bool,
) -> int:
    """Ask for something about one drain, with `wait` until it is over; what it already is, it is not asked again."""
    from predrain.actions.controller.person_request import RequestKind, is_granted

    with where.service(acting=wait) as client:
        drain = find_drain_id(client, named)
        one = client.get(f"drains/{quote_drain_id(drain)}")
        if not (wait and is_granted(RequestKind(verb), DrainState(one["state"]))):
            with tell_forwarding(named, one, client):
                one = ask(client, drain)
        if wait:
            one = watch_drain(client, drain, quiet=as_json)
        command = f"predrain drain {verb} {drain} --wait{options_of(where)}" if wait else ""
        code = _report_unfinished_drains(
            client, where, [one], frozenset({"cancelled"}) if verb == "cancel" else DONE, command
        )
    print_json(one) if as_json else print(f"{one['id']}: {read_state_text(one)}")
    return code
