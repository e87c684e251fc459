"""Running daemons, their release, and other activity, from `ceph status`, `ceph versions`, `ceph mgr dump`, `ceph
balancer status` and `ceph orch upgrade status`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from predrain.actions.cluster.dumps.dump_decoding import decode_answer
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
    """The running release. `mixed`: mon, mgr and OSDs are not all of one version, or `require_osd_release` lags
    behind.
    """

    release: str
    mixed: bool


def parse_health_status(raw: bytes) -> tuple[str, bool]:
    """Return the health (`HEALTH_OK` and so on), and whether the mgr's progress shows an upgrade. Raises
    NotUnderstood.
    """
    status = decode_answer("status", raw, _STATUS)
    upgrades = any(event.message.startswith("Upgrade to") for event in status.progress_events.values())
    return clean_text(status.health.status, CLUSTER_NAME.limit), upgrades


def read_errors(raw: bytes | None) -> Mapping[OsdId, tuple[str, ...]]:
    """Return the messages of Ceph's health about failed reads of single OSDs; none if `raw` is None. Raises
    NotUnderstood.
    """
    checks = decode_answer("health_detail", raw, _HEALTH_DETAIL).checks if raw is not None else {}
    found: dict[OsdId, list[str]] = {}
    for code in _READ_ERRORS:
        for told in checks[code].detail if code in checks else ():
            if of := _OSD.match(told.message):
                said = "".join(filter(str.isprintable, " ".join(told.message.split())))[:_LONGEST_TOLD]
                found.setdefault(OsdId(int(of[1])), []).append(f"Ceph says {code}: {said}.")
    return {osd: tuple(sentences) for osd, sentences in found.items()}


def parse_running_release(raw: bytes | None, required: str) -> Running:
    """Return the release of the daemons. Raises NotUnderstood.

    required: the map's `require_osd_release`, which counts if no daemon reports one. A release whose name is not known
    here is kept as it is.
    """
    kinds = decode_answer("versions", raw, _VERSIONS) if raw is not None else {}
    told = {name for kind in _DAEMONS for name in kinds.get(kind, {})}
    releases = {found[2] for name in told if (found := _VERSION.match(name))}
    if len(releases) != 1:
        return Running(required, mixed=len(told) != 0)
    release = releases.pop()
    return Running(release, mixed=len(told) > 1 or release != required)


def active_mgr(raw: bytes) -> str:
    """Return the name and the session of the active mgr; "" if there is none. Raises NotUnderstood."""
    mgr = decode_answer("mgr_dump", raw, _MGR)
    return (
        f"{clean_identifier(mgr.active_name, CLUSTER_NAME.limit)}.{mgr.active_gid}" if mgr.available else ""
    )


def balancer_active(raw: bytes | None) -> bool:
    """Return whether the balancer may move PGs; true if its status is missing. Raises NotUnderstood."""
    if raw is None:
        return True
    status = decode_answer("balancer_status", raw, _BALANCER)
    return status.active and status.mode != "none"


def is_orchestrator_upgrading(raw: bytes | None) -> bool:
    """Return whether the orchestrator runs an upgrade; false without an orchestrator. Raises NotUnderstood."""
    return raw is not None and decode_answer("orch_upgrade_status", raw, _UPGRADE).in_progress
