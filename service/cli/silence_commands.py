"""`predrain causes` and `predrain silence add|list|expire`: what needs a person, and what nobody wants to hear of."""

from __future__ import annotations

import urllib.parse
from typing import Annotated

from cyclopts import Parameter

from predrain.service.cli.shared_options import HERE, AsJson, ServiceAddress, escape_to_one_line, print_json
from predrain.service.terminal.service_connection import Json


def list_causes_command(*, where: ServiceAddress = HERE, as_json: AsJson = False) -> int:
    """List what needs a person now, one entry a cause, urgent causes first.

    Example: predrain causes
    """
    found = where.client().get("causes")
    if as_json:
        print_json(found)
        return 0
    for cause in found["items"]:
        print(escape_to_one_line(f"{cause['severity']}: {cause['title']}    ({cause['key']})"))
        for point in cause["points"]:
            print(escape_to_one_line(f"  - {point['sentence']}{' (silenced)' if point['silence'] else ''}"))
        if cause["action"]:
            print(escape_to_one_line(f"  To do: {cause['action']}"))
    if not found["items"]:
        print("nothing needs a person")
    return 0


def add_silence_command(
    *,
    hours: Annotated[float, Parameter(help="Hours that it stands; 720 h (30 days) at most.")],
    reason: Annotated[str, Parameter(help="The reason, for other persons.")],
    cause: Annotated[
        str, Parameter(help="Pattern of causes, as `predrain causes` names them: 'silent:*'.")
    ] = "",
    host: Annotated[str, Parameter(help="Pattern of host names.")] = "",
    model: Annotated[str, Parameter(help="Pattern of drive models.")] = "",
    name: Annotated[str, Parameter(help="Pattern of points: 'disk:ST4000DM000_Z305ABCD'.")] = "",
    where: ServiceAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Do not send messages about something for a while; drains go on. At least one pattern is needed.

    Example: predrain silence add --host stor-07 --hours 8 --reason "firmware update"
    """
    body = {"hours": hours, "reason": reason, "cause": cause, "host": host, "model": model, "name": name}
    made = where.client().post("silences", body).body
    print_json(made) if as_json else print(_describe_silence(made))
    return 0


def list_silences_command(*, where: ServiceAddress = HERE, as_json: AsJson = False) -> int:
    """Silences that stand.

    Example: predrain silence list
    """
    found = where.client().get("silences")
    if as_json:
        print_json(found)
        return 0
    for one in found["items"]:
        print(_describe_silence(one))
    if not found["items"]:
        print("no silences")
    return 0


def lift_silence_command(
    id: Annotated[  # noqa: A002
        str, Parameter(help="The silence's id, as `predrain silence list` prints it.")
    ],
    /,
    *,
    where: ServiceAddress = HERE,
) -> int:
    """End a silence now: predrain then reports the points that still stand.

    Example: predrain silence expire 3f9a01bc
    """
    where.client().delete(f"silences/{urllib.parse.quote(id, safe='')}")
    print(f"silence {id} has ended")
    return 0


def _describe_silence(one: Json) -> str:
    what = ", ".join(f"{key} {one[key]}" for key in ("cause", "host", "model", "name") if one[key])
    until = one["until"][:16].replace("T", " ")
    return escape_to_one_line(f"{one['id']}: {what} until {until}Z, by {one['by']}: {one['reason']}")
