"""One line of the report, and how clocks are compared."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

State = Literal["ok", "note", "wrong"]
TOLERATED = timedelta(seconds=5)
"""Of two clocks: what a busy machine and a slow answer make of equal ones."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`note`: it works, and somebody should know. `wrong`: it does not, or soon will not; `told` has the cure."""

    what: str
    state: State
    told: str


def clock(where: str, theirs: datetime, before: datetime, after: datetime) -> Finding:
    """Their clock beside ours, which showed `before` when it was asked for and `after` when the answer had come."""
    off = max(theirs - after, before - theirs, timedelta(0))
    what = f"clock, {where}"
    if off <= TOLERATED:
        return Finding(what, "ok", "agrees with ours")
    how = "ahead of" if theirs > after else "behind"
    told = f"{where} is {_long(off)} {how} this machine: let both follow a time server (chronyc tracking)"
    return Finding(what, "wrong", told)


def _long(off: timedelta) -> str:
    seconds = off.total_seconds()
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.0f} h"
    )
