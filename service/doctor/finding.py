"""One line of the report, and the comparison of two clocks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

State = Literal["ok", "note", "wrong"]
TOLERATED = timedelta(seconds=5)
"""The tolerated difference of two clocks: on a busy machine or with a slow answer equal clocks seem to differ by so
much.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """`note`: it works, and a person should know of something. `wrong`: it does not work, or soon will not; `told` has
    the cure.
    """

    what: str
    state: State
    told: str


def compare_clocks(where: str, theirs: datetime, before: datetime, after: datetime) -> Finding:
    """Compare another machine's clock with ours. Our clock showed `before` at the request and `after` at the answer."""
    off = max(theirs - after, before - theirs, timedelta(0))
    what = f"clock, {where}"
    if off <= TOLERATED:
        return Finding(what, "ok", "agrees with ours")
    how = "ahead of" if theirs > after else "behind"
    told = f"{where} is {_format_duration(off)} {how} this machine: let both follow a time server (chronyc tracking)"
    return Finding(what, "wrong", told)


def _format_duration(off: timedelta) -> str:
    seconds = off.total_seconds()
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.0f} h"
    )
