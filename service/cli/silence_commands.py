"""`predrain causes` and `predrain silence add|preview|list|expire`: what needs a person, and what nobody wants to hear
of.
"""

from __future__ import annotations

import urllib.parse
from typing import Annotated, Literal

from cyclopts import Parameter

from predrain.data.messages import format_count
from predrain.service.cli.shared_options import HERE, AsJson, ServiceAddress, escape_to_one_line, print_json
from predrain.service.terminal.service_connection import Json

SHOWN_MATCHERS = ("cause", "host", "model", "name", "rack", "severity")


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


CausePattern = Annotated[
    str, Parameter(help="Pattern of causes, as `predrain causes` names them: 'silent:*'.")
]
HostPattern = Annotated[str, Parameter(help="Pattern of host names.")]
ModelPattern = Annotated[str, Parameter(help="Pattern of drive models.")]
PointPattern = Annotated[str, Parameter(help="Pattern of points: 'disk:ST4000DM000_Z305ABCD'.")]
RackPattern = Annotated[str, Parameter(help="Pattern of racks.")]
OneSeverity = Annotated[
    Literal["notice", "urgent"] | None, Parameter(help="Severity of the points; both when it is not given.")
]


def add_silence_command(
    *,
    hours: Annotated[float, Parameter(help="Hours that it stands; 720 h (30 days) at most.")],
    reason: Annotated[str, Parameter(help="The reason, for other persons.")],
    cause: CausePattern = "",
    host: HostPattern = "",
    model: ModelPattern = "",
    name: PointPattern = "",
    rack: RackPattern = "",
    severity: OneSeverity = None,
    where: ServiceAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Do not send messages about something for a while; drains go on. At least one pattern is needed.

    Example: predrain silence add --host stor-07 --hours 8 --reason "firmware update"
    """
    body = {
        "hours": hours, "reason": reason, "cause": cause, "host": host, "model": model, "name": name, "rack": rack,
        "severity": severity,
    }  # fmt: skip
    made = where.client().post("silences", body).body
    print_json(made) if as_json else print(_describe_silence(made))
    return 0


def preview_silence_command(
    *,
    cause: CausePattern = "",
    host: HostPattern = "",
    model: ModelPattern = "",
    name: PointPattern = "",
    rack: RackPattern = "",
    severity: OneSeverity = None,
    where: ServiceAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Show what a silence would cover now: the points of present causes, and the disks. Nothing is silenced.

    Example: predrain silence preview --rack "a*" --severity notice
    """
    asked = {
        "cause": cause,
        "host": host,
        "model": model,
        "name": name,
        "rack": rack,
        "severity": severity or "",
    }
    query = urllib.parse.urlencode({key: value for key, value in asked.items() if value})
    found = where.client().get(f"silences/preview?{query}")
    if as_json:
        print_json(found)
        return 0
    print(f"{format_count(found['total_points'], 'point')} of present causes:")
    for point in found["points"]:
        print(escape_to_one_line(f"  - {point['severity']}: {point['sentence']}    ({point['cause']})"))
    print(f"{format_count(found['total_disks'], 'disk')} about which no message would be sent:")
    for disk in found["disks"]:
        print(escape_to_one_line(f"  - {disk}"))
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
    what = ", ".join(f"{key} {one[key]}" for key in SHOWN_MATCHERS if one[key])
    until = one["until"][:16].replace("T", " ")
    return escape_to_one_line(f"{one['id']}: {what} until {until}Z, by {one['by']}: {one['reason']}")
