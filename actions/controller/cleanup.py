"""Clean up after all drains when the map is settled: find the settings that took effect, and build the commands that
restore what ended drains left set, also those of an earlier process.

A step sets `norebalance` and `nobackfill` and clears them before it ends, within a minute. If a poll finds a flag of
ours set, a step was interrupted. A halt that interrupts a step clears the step's flags itself. A flag is ours until a
settled map no longer shows it. If it is set after that, an operator set it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from predrain.actions.cluster.cluster_port import Command, SetFlag
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.claimed_settings import (
    command_for,
    is_same_setting_value,
    key_of,
    read_setting_value,
)
from predrain.actions.core.held_throttles import is_cluster_setting
from predrain.actions.core.situation import is_drain_engaged
from predrain.actions.core.state_machine import ENDED
from predrain.data.drain import Drain, DrainState
from predrain.data.setting import OsdFlag, Setting, ValueBefore

_OVER = ENDED | {DrainState.VERIFIED}
"""States that a drain cannot reach while a flag of its own is set: every poll before would clear the flag and
wait.
"""


def stale_flags(drains: Iterable[Drain], view: ClusterView) -> tuple[Command, ...]:
    """Return commands that clear each flag that a drain which is not over recorded as set, if the map still
    shows it.

    The holder of the lease calls this function between steps. Flags that no drain recorded belong to an
    operator and stay.
    """
    ours = {
        key.name
        for drain in drains
        for key, value in drain.ours.items()
        if isinstance(key, OsdFlag) and value == "on" and drain.state not in _OVER
    }
    return tuple(SetFlag(flag, on=False) for flag in sorted(ours & view.flags))


def left_set(sent: Iterable[Command]) -> tuple[Command, ...]:
    """Return commands that clear the flags that `sent` sets and does not clear, last set first."""
    on = {command.flag: command.on for command in sent if isinstance(command, SetFlag)}
    return tuple(SetFlag(flag, on=False) for flag in reversed(on) if on[flag])


def build_cleanup_commands(
    drains: Iterable[Drain], view: ClusterView, *, halted: bool = False
) -> tuple[tuple[str, Command], ...]:
    """Build the commands that restore settings, each with the id of the drain that set it.

    The commands restore flags of any drain, because a flag never outlasts a step, and throttles and balancer of ended
    drains, the latter two not under a halt. A setting that no longer has the drain's value was changed by another
    process or a person, and stays.
    """
    drains = tuple(drains)
    held = {key for drain in drains if is_drain_engaged(drain) for key in drain.ours}
    back: dict[Setting, tuple[str, Command]] = {}
    for command in stale_flags(drains, view):
        owner = next(drain.id for drain in drains if key_of(command) in drain.ours)
        back[key_of(command)] = (owner, command)
    for drain in drains:
        if halted or drain.state not in ENDED:
            continue
        for key, value in drain.ours.items():
            if isinstance(key, ValueBefore) or not is_cluster_setting(key):
                continue  # first of all: a drain has a claim to each of its PGs
            was = drain.saved.get(key)
            if was is None or key in held or key in back:
                continue
            now = read_setting_value(view, key)
            if is_same_setting_value(key, now, value) and not is_same_setting_value(key, now, was):
                back[key] = (drain.id, command_for(key, was))
    return tuple(back.values())


def find_resolved_attempts(
    drains: Collection[Drain], view: ClusterView, attempts: Iterable[Setting]
) -> frozenset[Setting]:
    """Return the keys of `attempts` whose count starts again: the map shows the value that a drain set, or a person
    has paused the drain, or must help it.

    A cancel that failed is not among them, so that predrain gives up a command that the mon always refuses.
    """
    return frozenset(
        key
        for key in attempts
        for drain in drains
        if key in drain.ours
        and (
            _begins_anew(drain) or is_same_setting_value(key, read_setting_value(view, key), drain.ours[key])
        )
    )


def _begins_anew(drain: Drain) -> bool:
    stopped = drain.state in (DrainState.PAUSED, DrainState.FAILED)
    return stopped and drain.resume_to is not DrainState.CANCELLING
