"""What a counter did lately, from the changes that a drive's state remembers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from predrain.data.history import EPOCH
from predrain.features.state import DriveState

SATURATED: Final = 2**32 - 1
"""All ones in 32 bits: no count, and neither is anything above."""


@dataclass(frozen=True, slots=True)
class Rise:
    """A counter that rose within a window."""

    before: int
    now: int
    first_day: int
    """Day of the first rise in the window, days since 1970-01-01."""

    @property
    def gained(self) -> int:
        """How much it rose."""
        return self.now - self.before

    def __str__(self) -> str:
        return f"{self.before:,} to {self.now:,} since {date(self.first_day)}"


def rise(state: DriveState, counter: str, days: int) -> Rise | None:
    """The rise over the last `days`, from the value that held then or was seen first; None when there is none."""
    known = state.changes.get(counter, ())
    if not known:
        return None
    since = state.day - days
    before = next((value for day, value in reversed(known) if day <= since), known[0][1])
    now = known[-1][1]
    if not before < now < SATURATED:
        return None
    return Rise(before, now, next(day for day, value in known if day > since and value > before))


def unchanged(state: DriveState, days: int) -> str:
    """For how long it has been seen not to rise, at most `days`: "none new in 7 days"."""
    if state.day - state.first_day >= days:
        return f"none new in {days} days"
    return (
        f"none new since {date(state.first_day)}"
        if state.day > state.first_day
        else "seen for the first time"
    )


def date(day: int) -> str:
    """A day since 1970-01-01 as "03 Nov"."""
    return f"{EPOCH + timedelta(days=day):%d %b}"
