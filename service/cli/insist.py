"""`predrain drain insist`: a person lets one drain pass a guard for a while."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from predrain.service.cli.client import Client, Json
from predrain.service.cli.connect import Reach
from predrain.service.cli.drain import HERE, act_on_drain
from predrain.service.cli.options import AsJson
from predrain.service.cli.watching import quote_drain_id


def insist(
    drain: str,
    /,
    *,
    guard: Annotated[
        tuple[str, ...],
        Parameter(help="Code of a guard that refuses now, as `explain` prints it.", negative=""),
    ],
    reason: Annotated[str, Parameter(help="Why; kept in the journal and in the audit.")],
    confirm: Annotated[str, Parameter(help="The drain's OSD, typed once more: osd.N.")],
    minutes: Annotated[float, Parameter(help="How long it stands at most.")] = 60.0,
    where: Reach = HERE,
    as_json: AsJson = False,
) -> int:
    """Let one drain pass guards that refuse it now, in its present step and for 60 minutes at most.

    Needs a token with the scope admin. Nobody may insist past redundancy, failure domains, room or a halt: only guards
    that `explain` marks may be named. Exits with 1 where it is refused, and with 3 when no controller runs that would
    act on it.

    Example: predrain drain insist osd.217 --guard window --reason "it dies tonight" --confirm osd.217
    """
    body = {"guards": list(guard), "reason": reason, "minutes": minutes, "confirm": confirm}

    def ask(client: Client, id_: str) -> Json:
        return client.post(f"drains/{quote_drain_id(id_)}/insist", body).body

    return act_on_drain(where, drain, "insist", ask, as_json, wait=False)
