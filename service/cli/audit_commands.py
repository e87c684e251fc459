"""`predrain audit`: who asked for what, from where, and what was answered."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from predrain.service.cli.shared_options import HERE, AsJson, ServiceAddress, escape_to_one_line, print_json


def show_audit_command(
    *,
    limit: Annotated[int, Parameter(help="The newest so many calls.")] = 50,
    where: ServiceAddress = HERE,
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
        told = f"{call['caller']}  {call['request']}  -> {call['result']}  ({call['source']})"
        print(f"{call['at']}  {escape_to_one_line(told)}")
    if not found["items"]:
        print("nothing is on record")
    return 0
