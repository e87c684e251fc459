"""Flags that a step of ours left standing: cleared by whoever comes next.

A step sets `norebalance` and `nobackfill` and clears them before it ends (at most a minute); so a flag of ours that a
look finds standing was left by a step that was cut short.
"""

from __future__ import annotations

from collections.abc import Iterable

from actions.cluster.port import Command, SetFlag
from actions.cluster.view import ClusterView
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
