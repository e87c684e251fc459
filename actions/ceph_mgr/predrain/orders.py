"""The closed list of what the hand does: a key of the ledger and its target value, as commands to the mon.

What is not on the list is refused, whoever sealed it. Every value is absolute: doing it twice does nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Pairs = tuple[tuple[int, int], ...]
ABSENT = "-"
FLAGS = frozenset({"norebalance", "nobackfill"})
OPTIONS = frozenset(
    {
        "osd_max_backfills",
        "osd_recovery_max_active",
        "osd_recovery_max_active_hdd",
        "osd_recovery_max_active_ssd",
        "osd_recovery_op_priority",
        "osd_mclock_profile",
    }
)
PAIRS_MAX = 32
GRAIN = 1.5 / 65536
"""Ceph keeps weights in 16.16 fixed point."""


class NotOnTheList(Exception):
    """A step that the hand does not carry out; the text says which."""


@dataclass(frozen=True)
class Order:
    """What is to be set: `kind` is `upmap`, `reweight`, `crush_weight`, `affinity`, `flag`, `option` or `balancer`."""

    kind: str
    name: str = ""
    osd: int = -1
    number: float = 0.0
    pairs: Pairs = ()
    word: str = ""

    @property
    def moves(self) -> bool:
        """Whether PGs may peer or move for it."""
        return self.kind in ("upmap", "reweight", "crush_weight")

    @property
    def empties(self) -> bool:
        """Whether it takes an OSD out."""
        return self.kind in ("reweight", "crush_weight") and self.number == 0.0


def order(key: str, value: str) -> Order:
    """What a key and its value ask for. Raises NotOnTheList."""
    if re.fullmatch(r"upmap/\d{1,10}\.[0-9a-f]{1,8}", key):
        return Order("upmap", key[6:], pairs=_pairs(value))
    weight = re.fullmatch(r"osd\.(\d{1,7})/(reweight|crush_weight|affinity)", key)
    if weight:
        high = 100_000.0 if weight[2] == "crush_weight" else 1.0
        return Order(weight[2], osd=int(weight[1]), number=_number(key, value, high))
    kind, _, name = key.partition("/")
    if kind == "flag" and name in FLAGS and value in ("on", "off"):
        return Order("flag", name, word=value)
    if kind == "option" and name in OPTIONS and re.fullmatch(r"[a-z0-9_.-]{1,40}", value):
        return Order("option", name, word=value)
    if key == "balancer" and value in ("on", "off", ABSENT):
        return Order("balancer", word=value)
    raise NotOnTheList(f"setting {key} to {value[:60]!r} is not on the list of what the hand does")


def mon_commands(wanted: Order) -> tuple[dict[str, Any], ...]:
    """The commands as `MgrModule.mon_command` takes them, in their order; the next only where the one before was taken.

    A balancer whose row is taken away stays as it was told last until the mgr starts anew: it is woken first.
    """
    if wanted.kind == "balancer" and wanted.word == ABSENT:
        gone = {"prefix": "config rm", "who": "mgr", "name": "mgr/balancer/active"}
        return {"prefix": "balancer on"}, gone
    return (_mon_command(wanted),)


def _mon_command(wanted: Order) -> dict[str, Any]:
    if wanted.kind == "upmap":
        if not wanted.pairs:
            return {"prefix": "osd rm-pg-upmap-items", "pgid": wanted.name}
        ids = [osd for pair in wanted.pairs for osd in pair]
        return {"prefix": "osd pg-upmap-items", "pgid": wanted.name, "id": ids}
    if wanted.kind == "reweight":
        return {"prefix": "osd reweight", "id": wanted.osd, "weight": wanted.number}
    if wanted.kind == "crush_weight":
        return {"prefix": "osd crush reweight", "name": f"osd.{wanted.osd}", "weight": wanted.number}
    if wanted.kind == "affinity":
        return {"prefix": "osd primary-affinity", "id": wanted.osd, "weight": wanted.number}
    if wanted.kind == "flag":
        return {"prefix": "osd set" if wanted.word == "on" else "osd unset", "key": wanted.name}
    if wanted.kind == "option":
        if wanted.word == ABSENT:
            return {"prefix": "config rm", "who": "osd", "name": wanted.name}
        return {"prefix": "config set", "who": "osd", "name": wanted.name, "value": wanted.word}
    return {"prefix": f"balancer {wanted.word}"}


@dataclass(frozen=True)
class OsdSeen:
    """One OSD in the mgr's own map."""

    up: bool
    weight: float
    affinity: float
    crush_weight: float | None
    down_at: int


@dataclass(frozen=True)
class MgrView:
    """What the mgr itself sees, read for one step."""

    epoch: int
    osds: Mapping[int, OsdSeen]
    pools: Mapping[int, int]
    """pg_num by pool."""
    upmaps: Mapping[str, Pairs]
    flags: frozenset[str]
    inactive: int
    """PGs that are not active now."""


def stands(wanted: Order, value: str, world: MgrView) -> bool | None:
    """Whether the map holds `value` where `wanted` writes; None: not to be seen in the map."""
    if wanted.kind == "upmap":
        return sorted(world.upmaps.get(wanted.name, ())) == sorted(_pairs(value))
    if wanted.kind == "flag":
        return (wanted.name in world.flags) == (value == "on")
    osd = world.osds.get(wanted.osd)
    if osd is None or value == ABSENT:
        return None  # an option, the balancer, or an OSD that was not there
    now = {"reweight": osd.weight, "affinity": osd.affinity, "crush_weight": osd.crush_weight}[wanted.kind]
    return None if now is None else abs(now - _number(wanted.kind, value, 100_000.0)) < GRAIN


def meddled(wanted: Order, expects: str, world: MgrView) -> bool:
    """Whether somebody has changed what `wanted` writes since the map held `expects` there.

    Pairs that are gone are nobody's doing: the mon takes those away that a weight has made idle, and never adds any.
    """
    if wanted.kind == "upmap":
        return not set(world.upmaps.get(wanted.name, ())) <= set(_pairs(expects))
    return stands(wanted, expects, world) is False


def _pairs(value: str) -> Pairs:
    found = []
    for item in value.split():
        pair = re.fullmatch(r"(\d{1,7})>(\d{1,7})", item)
        if not pair or pair[1] == pair[2]:
            raise NotOnTheList(f"{value[:60]!r} is no list of pairs")
        found.append((int(pair[1]), int(pair[2])))
    targets = [new for _, new in found]
    if len(found) > PAIRS_MAX or len(set(targets)) != len(targets):
        raise NotOnTheList(f"{value[:60]!r} names a target twice or too many pairs")
    return tuple(found)


def _number(key: str, value: str, high: float) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d{1,20})?(e-\d{1,2})?", value) or not 0.0 <= float(value) <= high:
        raise NotOnTheList(f"{key} cannot be {value[:60]!r}")
    return float(value)
