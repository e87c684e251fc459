"""`ceph status`, `ceph versions`, `ceph mgr dump`, `ceph balancer status`, `ceph orch upgrade status`: who runs, which
release, and what else is at work."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from predrain.actions.cluster.dumps.decoding import decoded
from predrain.data.ids import OsdId
from predrain.data.outside_text import CLUSTER_NAME, clean_identifier, clean_text

_VERSION = re.compile(r"ceph version (\S+) \(\S+\) (\w+) \(")
_DAEMONS = ("mon", "mgr", "osd")


class _Health(msgspec.Struct):
    status: str


class _Told(msgspec.Struct):
    message: str = ""


class _Check(msgspec.Struct):
    detail: list[_Told] = []


class _HealthDetail(msgspec.Struct):
    checks: dict[str, _Check] = {}


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


_READ_ERRORS = ("OSD_TOO_MANY_REPAIRS", "BLUESTORE_SPURIOUS_READ_ERRORS")
"""Health checks that name OSDs whose reads failed or had to be repeated. Each line of detail begins with the OSD."""
_OSD = re.compile(r"\s*osd\.(\d{1,9})\b")
_LONGEST_TOLD = 200
_HEALTH_DETAIL = msgspec.json.Decoder(_HealthDetail)
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
    return clean_text(status.health.status, CLUSTER_NAME.limit), upgrades


def read_errors(raw: bytes | None) -> Mapping[OsdId, tuple[str, ...]]:
    """What Ceph's health says of reads that failed on single OSDs. None: it was not told. Raises NotUnderstood."""
    checks = decoded("health_detail", raw, _HEALTH_DETAIL).checks if raw is not None else {}
    found: dict[OsdId, list[str]] = {}
    for code in _READ_ERRORS:
        for told in checks[code].detail if code in checks else ():
            if of := _OSD.match(told.message):
                said = "".join(filter(str.isprintable, " ".join(told.message.split())))[:_LONGEST_TOLD]
                found.setdefault(OsdId(int(of[1])), []).append(f"Ceph says {code}: {said}.")
    return {osd: tuple(sentences) for osd, sentences in found.items()}


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
    return (
        f"{clean_identifier(mgr.active_name, CLUSTER_NAME.limit)}.{mgr.active_gid}" if mgr.available else ""
    )


def balancer_active(raw: bytes | None) -> bool:
    """Whether the balancer may move PGs; one that does not answer may. Raises NotUnderstood."""
    if raw is None:
        return True
    status = decoded("balancer_status", raw, _BALANCER)
    return status.active and status.mode != "none"


def upgrading(raw: bytes | None) -> bool:
    """Whether the orchestrator upgrades; without one it does not. Raises NotUnderstood."""
    return raw is not None and decoded("orch_upgrade_status", raw, _UPGRADE).in_progress
