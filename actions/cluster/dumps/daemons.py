"""`ceph status`, `ceph versions`, `ceph mgr dump`, `ceph balancer status`, `ceph orch upgrade status`: who runs, which
release, and what else is at work."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from actions.cluster.dumps.decoding import decoded

_VERSION = re.compile(r"ceph version (\S+) \(\S+\) (\w+) \(")
_DAEMONS = ("mon", "mgr", "osd")


class _Health(msgspec.Struct):
    status: str


class _Event(msgspec.Struct):
    message: str = ""


class _Status(msgspec.Struct):
    health: _Health
    progress_events: dict[str, _Event] = {}


class _Mgr(msgspec.Struct):
    active_gid: int
    active_name: str
    available: bool


class _Balancer(msgspec.Struct):
    active: bool
    mode: str = ""


class _Upgrade(msgspec.Struct):
    in_progress: bool = False


_STATUS = msgspec.json.Decoder(_Status)
_VERSIONS = msgspec.json.Decoder(dict[str, dict[str, int]])
_MGR = msgspec.json.Decoder(_Mgr)
_BALANCER = msgspec.json.Decoder(_Balancer)
_UPGRADE = msgspec.json.Decoder(_Upgrade)


@dataclass(frozen=True, slots=True)
class Running:
    """The release at work. `mixed`: not every mon, mgr and OSD is of one version, or the map's demand lags behind."""

    release: str
    mixed: bool


def health(raw: bytes) -> tuple[str, bool]:
    """(`HEALTH_OK` and so on, whether an upgrade shows among the mgr's progress). Raises NotUnderstood."""
    status = decoded("status", raw, _STATUS)
    upgrades = any(event.message.startswith("Upgrade to") for event in status.progress_events.values())
    return status.health.status, upgrades


def running(raw: bytes | None, required: str) -> Running:
    """The release of the daemons. required: the map's `require_osd_release`, which counts where no daemon tells; a
    release whose name is not known here is kept as it is. Raises NotUnderstood."""
    kinds = decoded("versions", raw, _VERSIONS) if raw is not None else {}
    told = {name for kind in _DAEMONS for name in kinds.get(kind, {})}
    releases = {found[2] for name in told if (found := _VERSION.match(name))}
    if len(releases) != 1:
        return Running(required, mixed=len(told) != 0)
    release = releases.pop()
    return Running(release, mixed=len(told) > 1 or release != required)


def active_mgr(raw: bytes) -> str:
    """Name and session of the mgr at work; empty when there is none. Raises NotUnderstood."""
    mgr = decoded("mgr_dump", raw, _MGR)
    return f"{mgr.active_name}.{mgr.active_gid}" if mgr.available else ""


def balancer_active(raw: bytes | None) -> bool:
    """Whether the balancer may move PGs; one that does not answer may. Raises NotUnderstood."""
    if raw is None:
        return True
    status = decoded("balancer_status", raw, _BALANCER)
    return status.active and status.mode != "none"


def upgrading(raw: bytes | None) -> bool:
    """Whether the orchestrator upgrades; without one it does not. Raises NotUnderstood."""
    return raw is not None and decoded("orch_upgrade_status", raw, _UPGRADE).in_progress
