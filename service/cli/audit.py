"""`predrain audit`: who asked for what, from where, and what was answered."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from predrain.service.cli.options import HERE, AsJson, Where, line, print_json


def audit(
    *,
    limit: Annotated[int, Parameter(help="The newest so many.")] = 50,
    where: Where = HERE,
    as_json: AsJson = False,
) -> int:
    """Every call that acted or was refused, oldest first.

    Example: predrain audit --limit 20
    """
    found = where.client().get(f"audit?limit={limit}")
    if as_json:
        print_json(found)
        return 0
    for call in found["items"]:
        told = f"{call['caller']}  {call['asked']}  -> {call['answered']}  ({call['source']})"
        print(f"{call['at']}  {line(told)}")
    if not found["items"]:
        print("nothing is on record")
    return 0
