"""Throttles and the balancer: cluster-wide settings that a drain holds, shares with other drains, and gives
back.

The reservations of the OSDs show which values are in force; the configuration does not (ceph.md b). If
another person or process sets an option while a drain holds it, their value stays, and the drain does not
restore its own.

One table holds the throttles that each release and scheduler obeys, and the value to which a drain lowers each, as
measured on real clusters (ceph.md b). An operator's value above the cap is lowered to the cap, and no value is ever
raised. A value at or below its cap, set or by default, stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from predrain.actions.cluster.cluster_port import Command
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.claimed_settings import (
    ABSENT,
    command_for,
    is_same_setting_value,
    read_setting_value,
)
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.situation import Context
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import OsdId
from predrain.data.setting import BalancerSwitch, ConfigOption, Setting, ValueBefore, YieldedValue, strip_note

BACKFILLS = "osd_max_backfills"
BACKFILLS_CAP = 1
OVERRIDE = "osd_mclock_override_recovery_settings"
PROFILE = "osd_mclock_profile"


class SchedulerSupport(StrEnum):
    """The settings that the OSDs obey."""

    VALUES = "the OSDs obey the recovery settings"
    OVERRIDE = "under mClock the OSDs obey the recovery settings only while the override is on"
    PROFILE = (
        "under mClock on this release the OSDs obey nothing but the profile, and 1000 backfills are allowed"
    )
    NONE = "it is not known which scheduler the OSDs run, or nobody has checked what it obeys"


_MCLOCK: Mapping[str, SchedulerSupport] = {
    "pacific": SchedulerSupport.PROFILE,
    "reef": SchedulerSupport.OVERRIDE,
    "squid": SchedulerSupport.OVERRIDE,
    "tentacle": SchedulerSupport.OVERRIDE,
}
"""Quincy is missing: its mClock changed from 1000 backfills to an override between two of its minor releases.
"""


@dataclass(frozen=True, slots=True)
class ThrottleOption:
    """A throttle with an integer value and a cap. `default` is in force if the mon's config has no value."""

    name: str
    cap: int
    default: int


_ACTIVE = ThrottleOption("osd_recovery_max_active", 3, 0)
"""0 means that the two options by device class apply."""
_ACTIVE_BY_CLASS = (
    ThrottleOption("osd_recovery_max_active_hdd", 3, 3),
    ThrottleOption("osd_recovery_max_active_ssd", 10, 10),
)
"""For flash the release's own default is the cap, because the cap of 3 was found on spinning disks."""
THROTTLES = (ThrottleOption(BACKFILLS, BACKFILLS_CAP, 1), _ACTIVE, *_ACTIVE_BY_CLASS)
"""Source of the caps: a talk on a 450-OSD cluster, 2016 ("Stabilizing Petabyte Ceph Cluster in OpenStack
Cloud"). With these caps and `osd_recovery_op_priority` 3, its clients lost less than 10 % while a disk was
rebuilt.
"""
_PRIORITY = ThrottleOption("osd_recovery_op_priority", 3, 3)

_PROFILES = ("high_client_ops", "balanced", "high_recovery_ops")
"""Profiles by the share that recovery may take, lowest first. `custom` has no place in the order and is left
alone.
"""

OPTIONS: tuple[str, ...] = (*(option.name for option in THROTTLES), _PRIORITY.name, PROFILE)
"""All options that a drain may ever set, in the section `osd`; the key of a least-privilege user names each.

The mClock override is not among them: without it mClock allows one backfill, which is the cap.
"""


def determine_scheduler_support(view: ClusterView) -> SchedulerSupport:
    """Return which settings the OSDs of this cluster obey."""
    if view.scheduler == "wpq":
        return SchedulerSupport.VALUES
    return (
        _MCLOCK.get(view.release, SchedulerSupport.NONE)
        if view.scheduler == "mclock_scheduler"
        else SchedulerSupport.NONE
    )


def lowered_to(view: ClusterView, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the options to set in the section `osd`, in that order; empty if no value in force is above its
    cap.

    settings: the mon's config as the operator has it, without the drains' values (keys as in
    `ClusterView.settings`).
    """
    held = determine_scheduler_support(view)
    if held is SchedulerSupport.NONE:
        return {}
    lower: dict[str, str] = {}
    if held is not SchedulerSupport.VALUES:
        lower.update(_lower_profile(view, settings))
    if held is SchedulerSupport.VALUES or (
        held is SchedulerSupport.OVERRIDE and _get_general_value(settings, OVERRIDE) == "true"
    ):
        lower.update(_lower_option_values(settings, _list_throttle_options(settings, held)))
    return lower


def above_cap(view: ClusterView) -> tuple[str, ...]:
    """Return settings of single OSDs, hosts or classes that override the section `osd` and are above their
    cap.
    """
    caps = {option.name: option.cap for option in (*THROTTLES, _PRIORITY)}
    rows = ((*key.rpartition("/"), value) for key, value in view.settings.items())
    return tuple(
        sorted(
            f"{section}/{name} {value}"
            for section, _, name, value in rows
            if section.startswith(("osd.", "osd/"))
            and name in caps
            and (number := _parse_whole_number(value)) is not None
            and number > caps[name]
        )
    )


def _list_throttle_options(settings: Mapping[str, str], held: SchedulerSupport) -> tuple[ThrottleOption, ...]:
    by_class = _parse_whole_number(_get_general_value(settings, _ACTIVE.name) or "0") == 0
    active = _ACTIVE_BY_CLASS if by_class else (_ACTIVE,)
    return (THROTTLES[0], *active, *((_PRIORITY,) if held is SchedulerSupport.VALUES else ()))


def _lower_option_values(settings: Mapping[str, str], options: tuple[ThrottleOption, ...]) -> dict[str, str]:
    found = {
        option: _parse_whole_number(_get_general_value(settings, option.name) or str(option.default))
        for option in options
    }
    return {
        option.name: str(option.cap)
        for option, value in found.items()
        if value is not None and value > option.cap
    }


def _lower_profile(view: ClusterView, settings: Mapping[str, str]) -> dict[str, str]:
    """Lower a profile that gives recovery more than the release's default profile does to that default."""
    usual = "high_client_ops" if view.release == "pacific" else "balanced"
    now = _get_general_value(settings, PROFILE)
    if now in _PROFILES and _PROFILES.index(now) > _PROFILES.index(usual):
        return {PROFILE: usual}
    return {}


def _get_general_value(settings: Mapping[str, str], name: str) -> str | None:
    """Return the value for an OSD without a setting of its own."""
    return settings.get(f"osd/{name}", settings.get(f"global/{name}"))


def _parse_whole_number(value: str) -> int | None:
    return int(value) if value.isdecimal() else None


_BALANCER = BalancerSwitch()


def is_cluster_setting(key: Setting) -> bool:
    """Return whether a setting, or the setting of a note, belongs to the whole cluster and not to one drain."""
    return isinstance(strip_note(key), BalancerSwitch | ConfigOption)


def compute_required_settings(
    view: ClusterView, drain: Drain, context: Context
) -> dict[Setting, tuple[str, str]]:
    """Return the shared settings that this drain must hold, as key -> (value before any drain changed it,
    required value).
    """
    holders = (drain, *context.list_other_drains(drain))
    balancer = next(
        (
            holder.saved[_BALANCER]
            for holder in holders
            if _BALANCER in holder.ours.keys() & holder.saved.keys()
        ),
        read_setting_value(view, _BALANCER),
    )
    held: dict[Setting, tuple[str, str]] = {_BALANCER: (balancer, "off")} if balancer != "off" else {}
    settings = _compute_operator_settings(view, holders)
    for name, value in lowered_to(view, settings).items():
        key = ConfigOption(name)
        if not any(YieldedValue(key) in holder.ours for holder in holders):
            held[key] = (settings.get(key.setting_key, ABSENT), value)
    return held


def lower_settings(
    view: ClusterView,
    drain: Drain,
    policy: Policy,
    context: Context,
    sent: Mapping[Setting, str],
    *,
    trouble: bool,
) -> tuple[Drain, tuple[Command, ...]]:
    """Return the drain with its claims to all settings that it must hold, and the commands that set them.

    sent: the values that this poll's steps write. trouble: the cluster has a problem that is not ours. The
    options then keep the operator's values and are lowered when the trouble is over.
    """
    saved, ours = dict(drain.saved), dict(drain.ours)
    commands: list[Command] = []
    for key, (was, low) in compute_required_settings(view, drain, context).items():
        if context.memory.attempts.get(key, 0) >= policy.upmap_attempts:
            continue  # the mon does not take it
        must = was if trouble and isinstance(key, ConfigOption) else low
        given_back = (
            key in ours
            and is_same_setting_value(key, ours[key], was)
            and not is_same_setting_value(key, was, must)
        )
        if drain.state is not DrainState.PREPARING and not given_back:
            continue
        saved[key] = was
        if {read_setting_value(view, key), sent.get(key, must)} != {must}:
            commands.append(command_for(key, must))
        ours[key] = must
    return replace(drain, saved=saved, ours=ours), tuple(commands)


def list_lowered_throttles(view: ClusterView, drain: Drain, context: Context) -> dict[Setting, str]:
    """Return the throttles that this drain holds down now, with the operator's values.

    A throttle that was given back counts until the map shows the operator's value.
    """
    return {
        key: was
        for key, was in _list_held_settings(drain).items()
        if isinstance(key, ConfigOption)
        and {drain.ours[key], read_setting_value(view, key)} != {was}
        and not is_set_by_others(view, drain, key, context)
    }


def confirm_restored_throttles(view: ClusterView, drain: Drain) -> Drain:
    """Return the drain after the map shows the throttles that it gave back.

    If a throttle is lowered after that, an operator or another process did it, even if the value equals ours.
    """
    back = {
        ValueBefore(key)
        for key, was in _list_held_settings(drain).items()
        if drain.ours[key] == was == read_setting_value(view, key)
    }
    if back.isdisjoint(drain.ours):
        return drain
    return replace(drain, ours={key: value for key, value in drain.ours.items() if key not in back})


def to_give_back(view: ClusterView, drain: Drain, context: Context) -> dict[Setting, str]:
    """Return the shared settings to restore when this drain ends, with their values.

    Two kinds of settings are left out: those that another engaged drain still holds and has not given back,
    and those that an operator or another process has set since.
    """
    kept = {
        key
        for other in context.list_other_drains(drain)
        for key, was in _list_held_settings(other).items()
        if not is_same_setting_value(key, other.ours[key], was)
    }
    return {
        key: was
        for key, was in _list_held_settings(drain).items()
        if key not in kept
        and not is_same_setting_value(key, read_setting_value(view, key), was)
        and not is_set_by_others(view, drain, key, context)
    }


def is_set_by_others(view: ClusterView, drain: Drain, key: Setting, context: Context) -> bool:
    """Return whether an operator or another process set the option.

    The option's value is then none that this drain set or found, and none that another drain set.
    """
    if not isinstance(key, ConfigOption):
        return False
    known = {drain.ours.get(key), drain.ours.get(ValueBefore(key)), drain.saved.get(key)}
    return read_setting_value(view, key) not in known | {
        other.ours.get(key) for other in context.list_other_drains(drain)
    }


def yield_foreign_options(view: ClusterView, drain: Drain, context: Context) -> Drain:
    """Return the drain without its claims to options that an operator or another process has set since."""
    theirs = [key for key in _list_held_settings(drain) if is_set_by_others(view, drain, key, context)]
    if not theirs:
        return drain
    gone = {name for key in theirs for name in (key, ValueBefore(key))}
    ours = {key: value for key, value in drain.ours.items() if key not in gone}
    return replace(
        drain, ours={**ours, **{YieldedValue(key): read_setting_value(view, key) for key in theirs}}
    )


def explain_unreliable_throttle(view: ClusterView, osds: Collection[OsdId]) -> str | None:
    """Explain, as the end of a sentence, why the throttle is not reliable at these OSDs; None if it is
    reliable.

    With an unreliable throttle only one PG moves at a time.
    """
    if determine_scheduler_support(view) is SchedulerSupport.NONE:
        return SchedulerSupport.NONE.value
    serving = sorted(osd for osd in osds if osd in view.osds and view.osds[osd].up)
    above = {osd: n for osd in serving if (n := view.backfills_in_force.get(osd, 0)) > BACKFILLS_CAP}
    if above:
        worst = max(above, key=lambda osd: (above[osd], -osd))
        return f"{above[worst]} backfills at once are in force at osd.{worst}, cap {BACKFILLS_CAP}"
    if rows := above_cap(view):
        return f"{rows[0]} passes over what is set for all OSDs"
    unread = [osd for osd in serving if osd not in view.backfills_in_force]
    if unread:
        more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
        return f"the reservations of osd.{unread[0]}{more} were not read, so what is in force is not verified"
    return None


def _list_held_settings(drain: Drain) -> dict[Setting, str]:
    return {key: drain.saved[key] for key in drain.ours if is_cluster_setting(key) and key in drain.saved}


def _compute_operator_settings(view: ClusterView, holders: Collection[Drain]) -> Mapping[str, str]:
    """Return the monitors' configuration as it was before any drain changed it."""
    settings = dict(view.settings)
    for key, was in (
        (k, w) for holder in reversed(tuple(holders)) for k, w in _list_held_settings(holder).items()
    ):
        if isinstance(key, ConfigOption):
            settings.pop(key.setting_key, None)
            if was != ABSENT:
                settings[key.setting_key] = was
    return settings
