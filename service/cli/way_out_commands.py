"""`predrain drain way-out` and `insist`: what a person can do about a drain that cannot go on by itself."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from predrain.service.cli.cluster_connection import DrainAddress
from predrain.service.cli.drain_commands import HERE, post_drain_request
from predrain.service.cli.drain_explanation import print_ways_out
from predrain.service.cli.drain_names import DrainName, find_drain_id
from predrain.service.cli.drain_progress import quote_drain_id, read_state_text
from predrain.service.cli.shared_options import AsJson, escape_to_one_line, print_json

Way = Annotated[
    Literal["stay-drained", "choose-other-targets", "give-up-cancel"] | None,
    Parameter(help="The way to take; without it, those that are open are listed."),
]


def way_out(
    drain: DrainName, way: Way = None, /, *, where: DrainAddress = HERE, as_json: AsJson = False
) -> int:
    """List the ways out of a drain that cannot go on by itself, or take one.

    DRAIN is its id, or `osd.N`. The way `stay-drained` takes back a cancel whose data cannot go back. The way
    `choose-other-targets` makes a new plan without targets that are full, down, out or of unknown size. The way
    `give-up-cancel` ends a cancel: settings go back, and upmaps and weights stay as they are and are listed. Room is
    made by hand; `drain cancel` is the way back. Exits with 1 for a way that is not open, and with 3 when no
    controller runs that would act on it.

    Example: predrain drain way-out osd.217 stay-drained
    """
    if way is not None:
        return post_drain_request(where, drain, way.replace("-", "_"), as_json)
    with where.service() as client:
        one = client.get(f"drains/{quote_drain_id(find_drain_id(client, drain))}")
    if as_json:
        print_json(one.get("ways_out", []))
        return 0
    print(
        f"{one['id']} is {read_state_text(one)}"
        + ("" if one.get("ways_out") else "; no way out is open to it now")
    )
    for said in one["held_by"]:
        print(escape_to_one_line(said))
    print_ways_out(one)
    return 0


def insist_past_guards_command(
    drain: DrainName,
    /,
    *,
    guard: Annotated[
        tuple[str, ...],
        Parameter(help="Code of a guard that refuses now, as `explain` prints it.", negative=""),
    ],
    reason: Annotated[str, Parameter(help="Why; kept in the journal and in the audit.")],
    confirm: Annotated[str, Parameter(help="The drain's OSD, typed once more: osd.N.")],
    minutes: Annotated[float, Parameter(help="The most minutes that the insistence holds.")] = 60.0,
    where: DrainAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Let one drain pass guards that refuse it now, in its present step and for 60 minutes at most.

    Needs a token with the scope admin. Nobody may insist past redundancy, failure domains, room or a halt: only guards
    that `explain` marks may be named. Exits with 1 where it is refused, and with 3 when no controller runs that would
    act on it.

    Example: predrain drain insist osd.217 --guard window --reason "it dies tonight" --confirm osd.217
    """
    body = {"guards": list(guard), "reason": reason, "minutes": minutes, "confirm": confirm}
    return post_drain_request(where, drain, "insist", as_json, body=body)
