"""Flags that a step of ours left standing: cleared by whoever comes next.

A step sets `norebalance` and `nobackfill` and clears them before it ends (at most a minute); so a flag of ours that a
look finds standing was left by a step that was cut short. A halt that cuts one short gives its flags back itself.
A flag is ours until a map that has settled shows it no more: whoever sets it after that is an operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from predrain.actions.cluster.port import Command, SetFlag
from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import found
from predrain.actions.core.state_machine import ENDED
from predrain.data.drain import Drain, DrainState
from predrain.data.setting import OsdFlag, strip_note

_OVER = ENDED | {DrainState.VERIFIED}
"""No drain comes so far while a flag of its own stands: it would be cleared, and waited for, at every look before."""


def stale_flags(drains: Iterable[Drain], view: ClusterView) -> tuple[Command, ...]:
    """Commands that clear every flag that a drain which is not over booked as set and that the map still shows.

    To be called by who holds the lease, between steps. Flags that no drain booked are an operator's and stay.
    """
    ours = {
        key.name
        for drain in drains
        for key, value in drain.ours.items()
        if isinstance(key, OsdFlag) and value == "on" and drain.state not in _OVER
    }
    return tuple(SetFlag(flag, on=False) for flag in sorted(ours & view.flags))


def left_set(sent: Iterable[Command]) -> tuple[Command, ...]:
    """Commands that clear the flags which these set and did not clear, last set first."""
    on = {command.flag: command.on for command in sent if isinstance(command, SetFlag)}
    return tuple(SetFlag(flag, on=False) for flag in reversed(on) if on[flag])


def let_go(drain: Drain, view: ClusterView) -> Drain:
    """The drain, ended or not, without its claims to flags that the map, which must have settled, shows no more."""
    gone = {key for key in drain.ours if isinstance(key, OsdFlag) and found(view, key) == "off"}
    if not gone:
        return drain
    ours = {key: value for key, value in drain.ours.items() if strip_note(key) not in gone}
    return replace(drain, ours=ours)
