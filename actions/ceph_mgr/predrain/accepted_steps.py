"""The closed list of steps that the mgr executor accepts: a key and its target value, as commands to the mon.

Any other step is refused, even with a valid signature. Every value is absolute, so a repeated step changes
nothing.
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


class UnknownStepKind(Exception):
    """A step that the mgr executor does not accept. The text names it."""


@dataclass(frozen=True)
class StepOrder:
    """The setting that a step writes: `kind` is `upmap`, `reweight`, `crush_weight`, `affinity`, `flag`, `option`
    or `balancer`.
    """

    kind: str
    name: str = ""
    osd: int = -1
    number: float = 0.0
    pairs: Pairs = ()
    word: str = ""

    @property
    def moves_pgs(self) -> bool:
        """Return whether the step makes PGs peer or move."""
        return self.kind in ("upmap", "reweight", "crush_weight")

    @property
    def empties_osd(self) -> bool:
        """Return whether the step takes an OSD out."""
        return self.kind in ("reweight", "crush_weight") and self.number == 0.0


def parse_order(key: str, value: str) -> StepOrder:
    """Parse a key and its value. Raises UnknownStepKind."""
    if re.fullmatch(r"upmap/\d{1,10}\.[0-9a-f]{1,8}", key):
        return StepOrder("upmap", key[6:], pairs=_parse_upmap_pairs(value))
    weight = re.fullmatch(r"osd\.(\d{1,7})/(reweight|crush_weight|affinity)", key)
    if weight:
        high = 100_000.0 if weight[2] == "crush_weight" else 1.0
        return StepOrder(weight[2], osd=int(weight[1]), number=_parse_bounded_number(key, value, high))
    kind, _, name = key.partition("/")
    if kind == "flag" and name in FLAGS and value in ("on", "off"):
        return StepOrder("flag", name, word=value)
    if kind == "option" and name in OPTIONS and re.fullmatch(r"[a-z0-9_.-]{1,40}", value):
        return StepOrder("option", name, word=value)
    if key == "balancer" and value in ("on", "off", ABSENT):
        return StepOrder("balancer", word=value)
    raise UnknownStepKind(f"setting {key} to {value[:60]!r} is not on the list of what the mgr executor does")


def mon_commands(wanted: StepOrder) -> tuple[dict[str, Any], ...]:
    """Return the commands as `MgrModule.mon_command` takes them, in order. Each is sent only if the one before was
    accepted.

    If the balancer's config row is removed, the mgr keeps the last state until it restarts, so `balancer on` comes
    first.
    """
    if wanted.kind == "balancer" and wanted.word == ABSENT:
        gone = {"prefix": "config rm", "who": "mgr", "name": "mgr/balancer/active"}
        return {"prefix": "balancer on"}, gone
    return (_mon_command(wanted),)


def _mon_command(wanted: StepOrder) -> dict[str, Any]:
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
class MgrOsd:
    """One OSD in the mgr's own map."""

    up: bool
    weight: float
    affinity: float
    crush_weight: float | None
    down_at: int


@dataclass(frozen=True)
class MgrView:
    """The mgr's own view of the map, read for one step."""

    epoch: int
    osds: Mapping[int, MgrOsd]
    pools: Mapping[int, int]
    """pg_num by pool."""
    upmaps: Mapping[str, Pairs]
    flags: frozenset[str]
    inactive: int
    """Number of PGs that are not active now."""


def is_value_in_map(wanted: StepOrder, value: str, world: MgrView) -> bool | None:
    """Return whether the map holds `value` where `wanted` writes, or None if the map does not show it."""
    if wanted.kind == "upmap":
        return sorted(world.upmaps.get(wanted.name, ())) == sorted(_parse_upmap_pairs(value))
    if wanted.kind == "flag":
        return (wanted.name in world.flags) == (value == "on")
    osd = world.osds.get(wanted.osd)
    if osd is None or value == ABSENT:
        return None  # an option, the balancer, or an OSD that was not there
    now = {"reweight": osd.weight, "affinity": osd.affinity, "crush_weight": osd.crush_weight}[wanted.kind]
    return None if now is None else abs(now - _parse_bounded_number(wanted.kind, value, 100_000.0)) < GRAIN


def has_foreign_change(wanted: StepOrder, expects: str, world: MgrView) -> bool:
    """Return whether another process or a person has changed what `wanted` writes since the map held `expects`
    there.

    Missing pairs are no such change: the mon removes pairs that a weight has made ineffective, and never adds any.
    """
    if wanted.kind == "upmap":
        return not set(world.upmaps.get(wanted.name, ())) <= set(_parse_upmap_pairs(expects))
    return is_value_in_map(wanted, expects, world) is False


def _parse_upmap_pairs(value: str) -> Pairs:
    found = []
    for item in value.split():
        pair = re.fullmatch(r"(\d{1,7})>(\d{1,7})", item)
        if not pair or pair[1] == pair[2]:
            raise UnknownStepKind(f"{value[:60]!r} is no list of pairs")
        found.append((int(pair[1]), int(pair[2])))
    targets = [new for _, new in found]
    if len(found) > PAIRS_MAX or len(set(targets)) != len(targets):
        raise UnknownStepKind(f"{value[:60]!r} names a target twice or too many pairs")
    return tuple(found)


def _parse_bounded_number(key: str, value: str, high: float) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d{1,20})?(e-\d{1,2})?", value) or not 0.0 <= float(value) <= high:
        raise UnknownStepKind(f"{key} cannot be {value[:60]!r}")
    return float(value)
