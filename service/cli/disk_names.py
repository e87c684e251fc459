"""Which disk a person means: by serial number, `osd.N`, device id, or `HOST:DEVICE`."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from predrain.data.refusal import Refusal
from predrain.service.cli.disk_rows import list_devices
from predrain.service.cli.row_tables import Row
from predrain.service.terminal.service_connection import CliClient

_NAMED = 5
"""The most names in a refusal."""


class UnknownDisk(Refusal):
    """No disk has that name."""


class AmbiguousDisk(Refusal):
    """Several disks have that name."""


def find_disk(client: CliClient, named: str) -> str:
    """Return the device id of the disk that is named. Raises UnknownDisk, AmbiguousDisk."""
    return choose_disk(named, list_devices(client))


def choose_disk(named: str, rows: Sequence[Row]) -> str:
    """Return the device id of the only row that `named` means: a device id before any other name.

    Raises UnknownDisk with names that are near, and AmbiguousDisk.
    """
    if any(row["device"] == named for row in rows):
        return named
    wanted = named.casefold()
    found = [row for row in rows if any(wanted == name.casefold() for name in _list_names(row))]
    if not found:
        known = {name.casefold(): name for row in rows for name in _list_names(row)}
        near = difflib.get_close_matches(wanted, sorted(known), n=_NAMED, cutoff=0.6)
        cure = (
            f"near it are {', '.join(known[name] for name in near)}" if near else "all disks: predrain disks"
        )
        raise UnknownDisk(
            f"no disk is known as {named}: a serial number, osd.N, a device id or HOST:DEVICE; {cure}"
        )
    if len(found) > 1:
        names = ", ".join(row["device"] for row in found[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise AmbiguousDisk(f"{len(found)} disks are known as {named}; give one of {names}{more}")
    return str(found[0]["device"])


def _list_names(row: Row) -> set[str]:
    """Return every name of a disk; a person may type each in any case."""
    own = {row["device"], *([row["serial"]] if row["serial"] else [])}
    at_host = {row["device_name"], f"/dev/{row['device_name']}"} if row["device_name"] else set()
    places = {f"{row['host']}:{name}" for name in own | at_host} if row["host"] else set()
    return own | places | {f"osd.{osd}" for osd in row["osds"]}
