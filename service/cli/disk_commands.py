"""`predrain disk NAME`: all that is known of one disk; and its self-tests, its light, and the host that has it."""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from predrain.service.cli.disk_names import find_disk
from predrain.service.cli.disk_request_view import (
    describe_request_line,
    describe_requests,
    describe_self_tests,
)
from predrain.service.cli.disk_rows import list_osds
from predrain.service.cli.disk_view import DiskAnswers, describe_disk
from predrain.service.cli.shared_options import HERE, AsJson, ServiceAddress, escape_to_one_line, print_json
from predrain.service.terminal.service_connection import CliClient

disk = App(name="disk")
WAIT_SECONDS = 60.0
ASK_AGAIN_SECONDS = 2.0
NOT_ANSWERED_YET = 3
DONE = ("started", "done")
WaitSeconds = Annotated[
    float,
    Parameter(help="Seconds to wait for the answer of the disk's host.", validator=Number(gte=0, lte=3600)),
]
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
        found,
        client.get(f"{path}/history?days={days}"),
        client.get(f"{path}/host"),
        osds,
        alerts,
        client.get(f"{path}/requests"),
    )


@disk.command(name="selftest")
def self_test_command(
    name: str,
    kind: Annotated[
        Literal["short", "long"] | None,
        Parameter(help="The test to start; without one, the self-tests of the disk are shown."),
    ] = None,
    /,
    *,
    wait_seconds: WaitSeconds = WAIT_SECONDS,
    where: ServiceAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Start a self-test of a disk, or show its self-tests: the one that runs, and the results in the drive's log.

    The disk's host fetches the request within a minute. Exits with 1 if a guard or the host refuses, and with 3 if the
    host has not answered in time.

    Example: predrain disk selftest osd.12 long

    Parameters
    ----------
    name
        Serial number, osd.N, device id, or HOST:DEVICE, such as stor-02:sdb.
    """
    client = where.client()
    path = f"devices/{urllib.parse.quote(find_disk(client, name), safe='')}"
    if kind is None:
        told = client.get(f"{path}/requests")
        if as_json:
            print_json(told)
            return 0
        for line in (*describe_self_tests(told), *describe_requests(told)):
            print(escape_to_one_line(line))
        return 0
    return _ask_and_wait(client, path, "self-tests", {"kind": kind}, wait_seconds, as_json=as_json)


@disk.command(name="locate")
def locate_command(
    name: str,
    light: Annotated[
        Literal["on", "off"], Parameter(help="Whether the light of the disk's slot shall be on.")
    ],
    /,
    *,
    wait_seconds: WaitSeconds = WAIT_SECONDS,
    where: ServiceAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Switch the light of a disk's slot, so that a person at the rack finds the disk.

    The answer names the slot where the enclosure reports it. Exits with 1 if the host refuses, and with 3 if it has not
    answered in time.

    Example: predrain disk locate osd.12 on

    Parameters
    ----------
    name
        Serial number, osd.N, device id, or HOST:DEVICE, such as stor-02:sdb.
    """
    client = where.client()
    path = f"devices/{urllib.parse.quote(find_disk(client, name), safe='')}"
    return _ask_and_wait(client, path, "locate", {"on": light == "on"}, wait_seconds, as_json=as_json)


def _ask_and_wait(
    client: CliClient, path: str, noun: str, body: Mapping[str, Any], wait_seconds: float, *, as_json: bool
) -> int:
    """Send a request about a disk, and wait until its host has answered. Return the exit code."""
    told = client.post(f"{path}/{noun}", body).body
    name, until = told["id"], time.monotonic() + wait_seconds
    while told["outcome"] is None and time.monotonic() < until:
        time.sleep(min(ASK_AGAIN_SECONDS, max(0.0, until - time.monotonic())))
        found = client.get(f"{path}/requests")
        told = next((one for one in (*found["open"], *found["ended"]) if one["id"] == name), told)
    if as_json:
        print_json(told)
    else:
        print(escape_to_one_line(describe_request_line(told)))
    if told["outcome"] is None:
        return NOT_ANSWERED_YET
    return 0 if told["outcome"] in DONE else 1


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
