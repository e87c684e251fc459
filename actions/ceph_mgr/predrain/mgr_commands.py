"""Requests of the module to the mgr and the mon: the cluster's halt, the mgr's view of the map, and commands.

`MgrApi` is the part of `MgrModule` that is used. Nothing here speaks to the service.
"""

from __future__ import annotations

import errno
import json
from typing import Any, Protocol

from .accepted_steps import MgrOsd, MgrView
from .service_requests import sanitize_line
from .text_signing import HALT

HALT_KEY = f"predrain/{HALT}"
"""Every sender of commands reads this key before each command. A bare `ceph config-key set` of it halts as well."""
WHY_MAX = 500


class MgrApi(Protocol):
    """The part of `MgrModule` that is used here."""

    def get(self, data_name: str) -> Any:
        """Return the data that the mgr holds under the name, or None if it does not know the name."""
        ...

    def get_store(self, key: str) -> str | None:
        """Return a value of the module's own config-key store."""
        ...

    def set_store(self, key: str, val: str | None) -> None:
        """Store a value in the cluster. None removes it."""
        ...

    def mon_command(self, cmd_dict: dict[str, Any]) -> tuple[int, str, str]:
        """Send a command. Return (return code, output, message)."""
        ...


class CephStateUnknown(Exception):
    """The mon or the mgr did not report a value that must be known."""


def halt_word(mgr: MgrApi) -> str | None:
    """Return the reason of the cluster's halt, or None if there is no halt. Raises CephStateUnknown, which the
    caller must treat as a halt.
    """
    rc, out, err = mgr.mon_command({"prefix": "config-key get", "key": HALT_KEY})
    if rc == -errno.ENOENT:
        return None
    if rc:
        raise CephStateUnknown(f"config-key {HALT_KEY} cannot be read: {sanitize_line(err)} ({rc})")
    return sanitize_line(out, WHY_MAX) or "no reason given"


def set_halt(mgr: MgrApi, why: str | None) -> None:
    """Set the halt with its reason, or lift it (None). Raises CephStateUnknown if the mon refuses."""
    asked = (
        {"prefix": "config-key rm", "key": HALT_KEY}
        if why is None
        else {
            "prefix": "config-key set",
            "key": HALT_KEY,
            "val": sanitize_line(why, WHY_MAX) or "no reason given",
        }
    )
    rc, _, err = mgr.mon_command(asked)
    if rc and not (why is None and rc == -errno.ENOENT):
        raise CephStateUnknown(f"config-key {HALT_KEY} cannot be written: {sanitize_line(err)} ({rc})")


def osds_here(mgr: MgrApi) -> dict[int, str] | None:
    """Return every OSD of the mgr's map with `up` or `down`, or None before the mgr has a map."""
    held = mgr.get("osd_map")
    if not isinstance(held, dict) or not held.get("osds"):
        return None
    return {int(osd["osd"]): "up" if osd["up"] else "down" for osd in held["osds"]}


def read_mgr_view(mgr: MgrApi) -> MgrView:
    """Return the mgr's present view of the map. Raises CephStateUnknown if a part is missing or has another form."""
    held, tree, pgs = mgr.get("osd_map"), mgr.get("osd_map_tree"), mgr.get("pg_summary")
    try:
        crush = {
            int(node["id"]): float(node["crush_weight"]) for node in tree["nodes"] if node["type"] == "osd"
        }
        states: dict[str, int] = pgs["all"]
        return MgrView(
            epoch=int(held["epoch"]),
            osds={
                int(osd["osd"]): MgrOsd(
                    up=bool(osd["up"]),
                    weight=float(osd["weight"]),
                    affinity=float(osd["primary_affinity"]),
                    crush_weight=crush.get(int(osd["osd"])),
                    down_at=int(osd["down_at"]),
                )
                for osd in held["osds"]
            },
            pools={int(pool["pool"]): int(pool["pg_num"]) for pool in held["pools"]},
            upmaps={
                str(item["pgid"]): tuple((int(pair["from"]), int(pair["to"])) for pair in item["mappings"])
                for item in held["pg_upmap_items"]
            },
            flags=frozenset(str(held["flags"]).split(",")),
            inactive=sum(count for state, count in states.items() if "active" not in state.split("+")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CephStateUnknown(
            f"the mgr does not show its map in a known way ({type(error).__name__}: {error})"
        ) from error


def find_ok_to_stop_objection(mgr: MgrApi, osd: int) -> str | None:
    """Return why `ok-to-stop` objects to stopping an OSD, or None. The answer is only a veto (ceph.md)."""
    rc, out, err = mgr.mon_command({"prefix": "osd ok-to-stop", "ids": [str(osd)], "format": "json"})
    return None if rc == 0 else f"ok-to-stop objects to osd.{osd} ({rc}): {sanitize_line(err or out, 200)}"


def send_mon_commands(mgr: MgrApi, commands: tuple[dict[str, Any], ...]) -> tuple[bool, str, int | None]:
    """Send the commands in order until one is refused.

    Return whether all were accepted, the text of the last answer, and the map epoch afterwards (None: not
    reported).
    """
    rc, out, err = 0, "", ""
    for command in commands:
        rc, out, err = mgr.mon_command(command)
        if rc:
            break
    words = sanitize_line(err or out, 500) or ("done" if rc == 0 else f"refused with {rc}")
    status, stat, _ = mgr.mon_command({"prefix": "osd stat", "format": "json"})
    try:
        epoch: int | None = int(json.loads(stat)["epoch"]) if status == 0 else None
    except (ValueError, KeyError, TypeError):
        epoch = None
    return rc == 0, words, epoch
