"""`predrain disk home`: which host has a disk that several hosts name."""

from __future__ import annotations

import urllib.parse

from predrain.service.cli.options import HERE, AsJson, Where, line, print_json


def home(device: str, host: str = "", /, *, where: Where = HERE, as_json: AsJson = False) -> int:
    """Say which host has a disk that several hosts name; without a host, show which hosts name it.

    The disk's history belongs to that host from then on. What the others send is of other disks.

    Example: predrain disk home ST4000DM000_Z305ABCD stor-02
    """
    path, client = f"devices/{urllib.parse.quote(device, safe='')}/home", where.client()
    told = client.post(path, {"host": host}).body if host else client.get(path)
    if as_json:
        print_json(told)
        return 0
    if host:
        print(line(f"{device}: its history is that of {host} within seconds"))
        return 0
    others = f"; other hosts that name it: {', '.join(told['rivals'])}" if told["rivals"] else ""
    print(line(f"{device}: {told['state']}, on {told['home']}{others}"))
    return 0
