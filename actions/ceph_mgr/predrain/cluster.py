"""What the module asks of the mgr and the mon: the halt that stands in the cluster, its own view of the map, commands.

`MgrApi` is the part of `MgrModule` that is used; nothing here speaks to the service.
"""

from __future__ import annotations

import errno
import json
from typing import Any, Protocol

from .asking import clean
from .orders import MgrView, OsdSeen
from .signing import HALT

HALT_KEY = f"predrain/{HALT}"
"""Read before every command by whoever sends one; a bare `ceph config-key set` of it halts as well."""
WHY_MAX = 500


class MgrApi(Protocol):
    """The part of `MgrModule` that is used here."""

    def get(self, data_name: str) -> Any:
        """What the mgr holds; None for a name it does not know."""
        ...

    def get_store(self, key: str) -> str | None:
        """A value of the module's own."""
        ...

    def set_store(self, key: str, val: str | None) -> None:
        """Keep it in the cluster; None forgets it."""
        ...

    def mon_command(self, cmd_dict: dict[str, Any]) -> tuple[int, str, str]:
        """rc, output, words."""
        ...


class Unread(Exception):
    """The mon or mgr did not say what must be known."""


def halt_word(mgr: MgrApi) -> str | None:
    """Why the cluster halts predrain; None: it does not. Raises Unread, which must hold as a halt."""
    rc, out, err = mgr.mon_command({"prefix": "config-key get", "key": HALT_KEY})
    if rc == -errno.ENOENT:
        return None
    if rc:
        raise Unread(f"config-key {HALT_KEY} cannot be read: {clean(err)} ({rc})")
    return clean(out, WHY_MAX) or "no reason given"


def set_halt(mgr: MgrApi, why: str | None) -> None:
    """Halt, or lift it. Raises Unread when the mon refuses."""
    asked = (
        {"prefix": "config-key rm", "key": HALT_KEY}
        if why is None
        else {"prefix": "config-key set", "key": HALT_KEY, "val": clean(why, WHY_MAX) or "no reason given"}
    )
    rc, _, err = mgr.mon_command(asked)
    if rc and not (why is None and rc == -errno.ENOENT):
        raise Unread(f"config-key {HALT_KEY} cannot be written: {clean(err)} ({rc})")


def osds_here(mgr: MgrApi) -> dict[int, str] | None:
    """Every OSD of the mgr's map, up or down; None before there is one."""
    held = mgr.get("osd_map")
    if not isinstance(held, dict) or not held.get("osds"):
        return None
    return {int(osd["osd"]): "up" if osd["up"] else "down" for osd in held["osds"]}


def world(mgr: MgrApi) -> MgrView:
    """What the mgr sees now. Raises Unread where a part is missing or strange."""
    held, tree, pgs = mgr.get("osd_map"), mgr.get("osd_map_tree"), mgr.get("pg_summary")
    try:
        crush = {
            int(node["id"]): float(node["crush_weight"]) for node in tree["nodes"] if node["type"] == "osd"
        }
        states: dict[str, int] = pgs["all"]
        return MgrView(
            epoch=int(held["epoch"]),
            osds={
                int(osd["osd"]): OsdSeen(
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
        raise Unread(
            f"the mgr does not show its map in a known way ({type(error).__name__}: {error})"
        ) from error


def unstoppable(mgr: MgrApi, osd: int) -> str | None:
    """Why `ok-to-stop` objects to going without an OSD; None where it does not. A veto only (ceph.md)."""
    rc, out, err = mgr.mon_command({"prefix": "osd ok-to-stop", "ids": [str(osd)], "format": "json"})
    return None if rc == 0 else f"ok-to-stop objects to osd.{osd} ({rc}): {clean(err or out, 200)}"


def send(mgr: MgrApi, commands: tuple[dict[str, Any], ...]) -> tuple[bool, str, int | None]:
    """Whether all were taken, in the last answer's words, and the map's epoch after it (None: not said).

    The first that is refused ends it.
    """
    rc, out, err = 0, "", ""
    for command in commands:
        rc, out, err = mgr.mon_command(command)
        if rc:
            break
    words = clean(err or out, 500) or ("done" if rc == 0 else f"refused with {rc}")
    status, stat, _ = mgr.mon_command({"prefix": "osd stat", "format": "json"})
    try:
        epoch: int | None = int(json.loads(stat)["epoch"]) if status == 0 else None
    except (ValueError, KeyError, TypeError):
        epoch = None
    return rc == 0, words, epoch
