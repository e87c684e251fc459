"""Which recovery throttles a release and its scheduler obey, and how far each is lowered for a drain.

One table for what was measured on real clusters (ceph.md b). The throttle caps: what the operator runs is lowered to
the cap, never raised; what stands at or below its cap, by setting or by default, is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from predrain.actions.cluster.view import ClusterView

BACKFILLS = "osd_max_backfills"
BACKFILLS_CAP = 1
OVERRIDE = "osd_mclock_override_recovery_settings"
PROFILE = "osd_mclock_profile"


class Grip(StrEnum):
    """What the OSDs obey."""

    VALUES = "the OSDs obey the recovery settings"
    OVERRIDE = "under mClock the OSDs obey the recovery settings only while the override is on"
    PROFILE = (
        "under mClock on this release the OSDs obey nothing but the profile, and 1000 backfills are allowed"
    )
    NONE = "it is not known which scheduler the OSDs run, or nobody has checked what it obeys"


_MCLOCK: Mapping[str, Grip] = {
    "pacific": Grip.PROFILE,
    "reef": Grip.OVERRIDE,
    "squid": Grip.OVERRIDE,
    "tentacle": Grip.OVERRIDE,
}
"""Quincy is not here: its mClock changed from 1000 backfills to an override between two of its minor releases."""


@dataclass(frozen=True, slots=True)
class Knob:
    """A whole number that caps. `default` is in force where the mon's config says nothing."""

    name: str
    cap: int
    default: int


_ACTIVE = Knob("osd_recovery_max_active", 3, 0)
"""0 leaves it to the two of the device class."""
_ACTIVE_BY_CLASS = (Knob("osd_recovery_max_active_hdd", 3, 3), Knob("osd_recovery_max_active_ssd", 10, 10))
"""For flash the release's own default is the cap: the seed's 3 was found on spinning disks."""
KNOBS = (Knob(BACKFILLS, BACKFILLS_CAP, 1), _ACTIVE, *_ACTIVE_BY_CLASS)
"""Source of the caps: a talk on a 450-OSD cluster, 2016 ("Stabilizing Petabyte Ceph Cluster in OpenStack Cloud"): with
these its clients lost less than 10 % while a disk was rebuilt. So does `osd_recovery_op_priority` 3.
"""
_PRIORITY = Knob("osd_recovery_op_priority", 3, 3)

_PROFILES = ("high_client_ops", "balanced", "high_recovery_ops")
"""By what recovery may take, least first. `custom` has no place among them and is left alone."""

OPTIONS: tuple[str, ...] = (*(knob.name for knob in KNOBS), _PRIORITY.name, PROFILE)
"""All that a drain may ever set, in the section `osd`; the key of a least-privilege user names each. The override is
not among them: without it mClock allows one backfill, which is the cap.
"""


def grip(view: ClusterView) -> Grip:
    """What the OSDs of this cluster obey."""
    if view.scheduler == "wpq":
        return Grip.VALUES
    return _MCLOCK.get(view.release, Grip.NONE) if view.scheduler == "mclock_scheduler" else Grip.NONE


def lowered_to(view: ClusterView, settings: Mapping[str, str]) -> dict[str, str]:
    """Options to set in the section `osd`, in the order to set them; empty when nothing in force is above its cap.

    settings: the mon's config as the operator has it, without what drains hold (keys as in `ClusterView.settings`).
    """
    held = grip(view)
    if held is Grip.NONE:
        return {}
    lower: dict[str, str] = {}
    if held is not Grip.VALUES:
        lower.update(_profile(view, settings))
    if held is Grip.VALUES or (held is Grip.OVERRIDE and _general(settings, OVERRIDE) == "true"):
        lower.update(_values(settings, _knobs(settings, held)))
    return lower


def above_cap(view: ClusterView) -> tuple[str, ...]:
    """Settings of single OSDs, hosts or classes that pass over the section `osd` and stand above their cap."""
    caps = {knob.name: knob.cap for knob in (*KNOBS, _PRIORITY)}
    rows = ((*key.rpartition("/"), value) for key, value in view.settings.items())
    return tuple(
        sorted(
            f"{section}/{name} {value}"
            for section, _, name, value in rows
            if section.startswith(("osd.", "osd/"))
            and name in caps
            and (number := _number(value)) is not None
            and number > caps[name]
        )
    )


def _knobs(settings: Mapping[str, str], held: Grip) -> tuple[Knob, ...]:
    by_class = _number(_general(settings, _ACTIVE.name) or "0") == 0
    active = _ACTIVE_BY_CLASS if by_class else (_ACTIVE,)
    return (KNOBS[0], *active, *((_PRIORITY,) if held is Grip.VALUES else ()))


def _values(settings: Mapping[str, str], knobs: tuple[Knob, ...]) -> dict[str, str]:
    found = {knob: _number(_general(settings, knob.name) or str(knob.default)) for knob in knobs}
    return {
        knob.name: str(knob.cap) for knob, value in found.items() if value is not None and value > knob.cap
    }


def _profile(view: ClusterView, settings: Mapping[str, str]) -> dict[str, str]:
    """A profile that gives recovery more than the release's default does is lowered to that default."""
    usual = "high_client_ops" if view.release == "pacific" else "balanced"
    now = _general(settings, PROFILE)
    if now in _PROFILES and _PROFILES.index(now) > _PROFILES.index(usual):
        return {PROFILE: usual}
    return {}


def _general(settings: Mapping[str, str], name: str) -> str | None:
    """What holds for an OSD without a row of its own."""
    return settings.get(f"osd/{name}", settings.get(f"global/{name}"))


def _number(value: str) -> int | None:
    return int(value) if value.isdecimal() else None
