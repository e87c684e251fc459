"""`predrain outcome`."""

from __future__ import annotations

import urllib.parse
from typing import Annotated, Literal

from cyclopts import Parameter

from predrain.service.cli.shared_options import HERE, AsJson, ServiceAddress, print_json

Said = Literal["failed", "removed", "replaced", "confirmed", "cleared", "unverified"]


def record_outcome_command(
    device: Annotated[str, Parameter(help="Device id of the disk.")],
    fate: Annotated[
        Said, Parameter(help="The end of the disk, or the finding about it; the last statement counts.")
    ],
    /,
    *,
    note: Annotated[str, Parameter(help="Your findings.")] = "",
    where: ServiceAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Say what became of a disk: training and the forecast's own score keeping read it.

    Example: predrain outcome ST4000DM000_Z305ABCD failed --note "clicked, did not spin up"
    """
    path = f"devices/{urllib.parse.quote(device, safe='')}/outcome"
    kept = where.client().post(path, {"fate": fate, "note": note}).body
    print_json(kept) if as_json else print(
        f"{device}: {kept['fate']}, said by {kept['source']} at {kept['at']}"
    )
    return 0
