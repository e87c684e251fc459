"""`predrain fill`: the way back."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from predrain.service.cli.connect import Reach
from predrain.service.cli.drain import HERE, Waiting, asked
from predrain.service.cli.options import AsJson


def fill(
    target: str,
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; kept in the journal.")] = "",
    yes: Annotated[bool, Parameter(negative="", help="Approve at once what is planned.")] = False,
    wait: Waiting = False,
    dry_run: Annotated[bool, Parameter(negative="", help="Print the plan, ask for nothing.")] = False,
    where: Reach = HERE,
    as_json: AsJson = False,
) -> int:
    """Fill a new disk in a drained slot (`osd.N`) a few PGs at a time, under the same guards as a drain.

    The OSD must be up and out; `ceph osd add-noin osd.N` before it starts keeps it out. Exits with 3 when it was
    refused or held, or when no controller runs that would act on it; why is on stderr.

    Example: predrain fill osd.217 --yes --wait
    """
    return asked(
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
