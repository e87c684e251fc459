"""`predrain receiver list|test`: the channels by which people get messages, and a test message."""

from __future__ import annotations

import urllib.parse
from typing import Annotated

from cyclopts import Parameter

from predrain.service.cli.shared_options import HERE, AsJson, ServiceAddress, escape_to_one_line, print_json
from predrain.service.terminal.service_connection import Json


def list_receivers_command(*, where: ServiceAddress = HERE, as_json: AsJson = False) -> int:
    """List the channels that the settings name, with their routes and troubles.

    Example: predrain receiver list
    """
    found = where.client().get("receivers")
    if as_json:
        print_json(found)
        return 0
    for one in found["items"]:
        print(_describe_receiver(one))
    if not found["items"]:
        print("no receivers: nobody is notified")
    return 0


def send_test_command(
    name: Annotated[
        str | None, Parameter(help="The channel, as `receiver list` names it; all when not given.")
    ] = None,
    /,
    *,
    where: ServiceAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """Send a test message by one channel, or by all. Exits with 1 if a receiver did not take it.

    Example: predrain receiver test slack.storage
    """
    client = where.client()
    names = [one["name"] for one in client.get("receivers")["items"]] if name is None else [name]
    done = [client.post(f"receivers/{urllib.parse.quote(one, safe='')}/test", {}).body for one in names]
    if as_json:
        print_json(done)
    else:
        for one in done:
            told = "took the test message" if one["delivered"] else f"did not take it: {one['problem']}"
            print(escape_to_one_line(f"{one['name']} {told}"))
        if not names:
            print("no receivers: nobody is notified")
    return 0 if all(one["delivered"] for one in done) else 1


def _describe_receiver(one: Json) -> str:
    route = [one["min_severity"], *(f"host {host}" for host in one["only_hosts"])]
    route += [f"rack {rack}" for rack in one["only_racks"]]
    told = f"{one['name']} ({', '.join(route)}): {one['sent']} sent, {one['failed']} failed"
    return escape_to_one_line(f"{told}; {one['problem']}" if one["problem"] else told)
