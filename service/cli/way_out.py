"""`predrain drain way-out`: what a person can do about a drain that cannot go on by itself."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from predrain.service.cli.client import Client, Json
from predrain.service.cli.connect import Reach
from predrain.service.cli.drain import HERE, act_on_drain
from predrain.service.cli.explained import print_ways_out
from predrain.service.cli.naming import find_drain_id
from predrain.service.cli.options import AsJson, line, print_json
from predrain.service.cli.watching import quote_drain_id, read_state_text

Way = Annotated[
    Literal["stay-drained", "choose-other-targets", "give-up-cancel"] | None,
    Parameter(help="The way to take; without it, those that are open are listed."),
]


def way_out(drain: str, way: Way = None, /, *, where: Reach = HERE, as_json: AsJson = False) -> int:
    """List the ways out of a drain that cannot go on by itself, or take one.

    DRAIN is its id, or `osd.N`. stay-drained takes back a cancel whose data cannot go back. choose-other-targets plans
    anew without targets that are full, down, out or of unknown size. give-up-cancel ends a cancel: settings go back,
    and upmaps and weights stay as they are and are listed. Room is made by hand; `drain cancel` is the way back. Exits
    with 1 for a way that is not open, and with 3 when no controller runs that would act on it.

    Example: predrain drain way-out osd.217 stay-drained
    """
    if way is not None:
        route = way.replace("-", "_")

        def ask(client: Client, id_: str) -> Json:
            return client.post(f"drains/{quote_drain_id(id_)}/{route}").body

        return act_on_drain(where, drain, route, ask, as_json, wait=False)
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
        print(line(said))
    print_ways_out(one)
    return 0
