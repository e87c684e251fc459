"""Flags that a step of ours left standing: cleared by whoever comes next.

A step sets `norebalance` and `nobackfill` and clears them before it ends (at most a minute); so a flag of ours that a
look finds standing was left by a step that was cut short. A halt that cuts one short gives its flags back itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from actions.cluster.port import Command, SetFlag
from actions.cluster.view import ClusterView
from actions.ledger import cleared
from data.drain import Drain


def stale_flags(drains: Iterable[Drain], view: ClusterView) -> tuple[Command, ...]:
    """Commands that clear every flag that a drain, ended or not, booked as set and that the map still shows.

    To be called by who holds the lease, between steps. Flags that no drain booked are an operator's and stay.
    """
    ours = {
        key.removeprefix("flag/")
        for drain in drains
        for key, value in drain.ours.items()
        if key.startswith("flag/") and value == "on"
    }
    return tuple(SetFlag(flag, on=False) for flag in sorted(ours & view.flags))


def left_set(sent: Iterable[Command]) -> tuple[Command, ...]:
    """Commands that clear the flags which these set and did not clear, last set first."""
    on = {command.flag: command.on for command in sent if isinstance(command, SetFlag)}
    return tuple(SetFlag(flag, on=False) for flag in reversed(on) if on[flag])


def let_go(drain: Drain, view: ClusterView, now: datetime) -> Drain:
    """The drain without a claim to flags that stand no more: whoever sets one of them next is an operator."""
    ours = {key: value for key, value in drain.ours.items() if not cleared(view, key)}
    if ours == drain.ours:
        return drain
    return replace(drain, ours=ours, revision=drain.revision + 1, updated_at=now)
