"""`predrain causes` and `predrain silence add|list|lift`: what needs a person, and what nobody wants to hear of."""

from __future__ import annotations

import urllib.parse
from typing import Annotated

from cyclopts import Parameter

from predrain.service.cli.client import Json
from predrain.service.cli.options import HERE, AsJson, Where, line, print_json


def causes(*, where: Where = HERE, as_json: AsJson = False) -> int:
    """What needs a person now, one entry a cause, urgent things first.

    Example: predrain causes
    """
    found = where.client().get("causes")
    if as_json:
        print_json(found)
        return 0
    for cause in found["items"]:
        print(line(f"{cause['severity']}: {cause['title']}    ({cause['key']})"))
        for point in cause["points"]:
            print(line(f"  - {point['line']}{' (silenced)' if point['silenced'] else ''}"))
        if cause["todo"]:
            print(line(f"  To do: {cause['todo']}"))
    if not found["items"]:
        print("nothing needs a person")
    return 0


def add(
    *,
    hours: Annotated[float, Parameter(help="How long it stands; 30 days, 720, at most.")],
    why: Annotated[str, Parameter(help="Why, for whoever wonders.")],
    cause: Annotated[
        str, Parameter(help="Pattern of causes, as `predrain causes` names them: 'silent:*'.")
    ] = "",
    host: Annotated[str, Parameter(help="Pattern of host names.")] = "",
    model: Annotated[str, Parameter(help="Pattern of drive models.")] = "",
    name: Annotated[str, Parameter(help="Pattern of points: 'disk:ST4000DM000_Z305ABCD'.")] = "",
    where: Where = HERE,
    as_json: AsJson = False,
) -> int:
    """Do not send messages about something for a while; drains go on. At least one pattern is needed.

    Example: predrain silence add --host stor-07 --hours 8 --why "firmware update"
    """
    body = {"hours": hours, "why": why, "cause": cause, "host": host, "model": model, "name": name}
    made = where.client().post("silences", body).body
    print_json(made) if as_json else print(_told(made))
    return 0


def listing(*, where: Where = HERE, as_json: AsJson = False) -> int:
    """Silences that stand.

    Example: predrain silence list
    """
    found = where.client().get("silences")
    if as_json:
        print_json(found)
        return 0
    for one in found["items"]:
        print(_told(one))
    if not found["items"]:
        print("no silences")
    return 0


def lift(id: str, /, *, where: Where = HERE) -> int:  # noqa: A002
    """End a silence now: what still stands is told.

    Example: predrain silence lift 3f9a01bc
    """
    where.client().delete(f"silences/{urllib.parse.quote(id, safe='')}")
    print(f"silence {id} is lifted")
    return 0


def _told(one: Json) -> str:
    what = ", ".join(f"{key} {one[key]}" for key in ("cause", "host", "model", "name") if one[key])
    until = one["until"][:16].replace("T", " ")
    return line(f"{one['id']}: {what} until {until}Z, by {one['by']}: {one['why']}")
