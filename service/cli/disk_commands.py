"""`predrain disk host`: which host has a disk that several hosts name."""

from __future__ import annotations

import urllib.parse

from predrain.service.cli.shared_options import HERE, AsJson, ServiceAddress, escape_to_one_line, print_json


def assign_disk_host_command(
    device: str, host: str = "", /, *, where: ServiceAddress = HERE, as_json: AsJson = False
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
