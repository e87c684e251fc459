"""`predrain disk NAME`: all that is known of one disk; `predrain disk host`: which host has it, if several name it."""

from __future__ import annotations

import urllib.parse
from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from predrain.service.cli.disk_names import find_disk
from predrain.service.cli.disk_rows import list_osds
from predrain.service.cli.disk_view import DiskAnswers, describe_disk
from predrain.service.cli.shared_options import HERE, AsJson, ServiceAddress, escape_to_one_line, print_json
from predrain.service.terminal.service_connection import CliClient

disk = App(name="disk")
_NEWEST_ALERTS = 1000


@disk.default
def show_disk_command(
    name: str,
    /,
    *,
    days: Annotated[
        int, Parameter(help="Days of history, back from now.", validator=Number(gte=1, lte=3650))
    ] = 60,
    where: ServiceAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Show everything that is known of one disk: verdict, place, reasons, history, drains and what was done.

    Example: predrain disk osd.12

    Parameters
    ----------
    name
        Serial number, osd.N, device id, or HOST:DEVICE, such as stor-02:sdb.
    """
    client = where.client()
    answers = _ask_about_disk(client, find_disk(client, name), days)
    if as_json:
        print_json(answers.to_json())
        return 0
    for line in describe_disk(answers, days):
        print(escape_to_one_line(line))
    return 0


def _ask_about_disk(client: CliClient, device: str, days: int) -> DiskAnswers:
    path = f"devices/{urllib.parse.quote(device, safe='')}"
    found = client.get(path)
    osds = [row for row in list_osds(client) if row["device"] == device] if found["osds"] else []
    alerts = [one for one in client.get(f"alerts?limit={_NEWEST_ALERTS}")["items"] if one["device"] == device]
    return DiskAnswers(
        found, client.get(f"{path}/history?days={days}"), client.get(f"{path}/host"), osds, alerts
    )


@disk.command(name="host")
def assign_disk_host_command(
    device: Annotated[str, Parameter(help="Device id of the disk.")],
    host: Annotated[
        str, Parameter(help="The host that has it; without one, the hosts that name it are shown.")
    ] = "",
    /,
    *,
    where: ServiceAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Say which host has a disk that several hosts name; without a host, show which hosts name it.

    The disk's history belongs to that host from then on. Readings of the other hosts are those of other disks.

    Example: predrain disk host ST4000DM000_Z305ABCD stor-02
    """
    path, client = f"devices/{urllib.parse.quote(device, safe='')}/host", where.client()
    told = client.post(path, {"host": host}).body if host else client.get(path)
    if as_json:
        print_json(told)
        return 0
    if host:
        print(escape_to_one_line(f"{device}: its history is that of {host} within seconds"))
        return 0
    others = f"; other hosts that name it: {', '.join(told['other_hosts'])}" if told["other_hosts"] else ""
    print(escape_to_one_line(f"{device}: {told['state']}, on {told['host']}{others}"))
    return 0
