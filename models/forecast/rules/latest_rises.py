"""The latest rise of a counter, from the changes that a drive's state remembers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from predrain.data.history import EPOCH
from predrain.features.drive_state import DriveState

SATURATED: Final = 2**32 - 1
"""All ones in 32 bits. This value and all above are no counts."""


@dataclass(frozen=True, slots=True)
class CounterRise:
    """A counter that rose within a window."""

    before: int
    now: int
    first_day: int
    """Day of the first rise in the window, days since 1970-01-01."""

    @property
    def gain(self) -> int:
        """The size of the rise."""
        return self.now - self.before

    def __str__(self) -> str:
        return f"{self.before:,} to {self.now:,} since {format_short_date(self.first_day)}"


def find_recent_rise(state: DriveState, counter: str, days: int) -> CounterRise | None:
    """Find the rise over the last `days`, from the value that held then or was seen first. Return None without a
    rise."""
    known = state.changes.get(counter, ())
    if len(known) < 2:  # the usual case: it has one value, that of the first reading
        return None
    since = state.day - days
    before = next((value for day, value in reversed(known) if day <= since), known[0][1])
    now = known[-1][1]
    if not before < now < SATURATED:
        return None
    return CounterRise(before, now, next(day for day, value in known if day > since and value > before))


def describe_unchanged(state: DriveState, days: int) -> str:
    """Describe for how long the counter has been seen not to rise, at most `days`: "none new in 7 days"."""
    if state.day - state.first_day >= days:
        return f"none new in {days} days"
    return (
        f"none new since {format_short_date(state.first_day)}"
        if state.day > state.first_day
        else "seen for the first time"
    )


def format_short_date(day: int) -> str:
    """Format a day since 1970-01-01 as "03 Nov"."""
    return f"{EPOCH + timedelta(days=day):%d %b}"
