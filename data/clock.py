"""The clock port: a package gets the time as an argument, and a loop gets it from a clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Gives the time and waits. In a simulation the time jumps; in a service it passes."""

    def now(self) -> datetime:
        """Return the current time, in UTC with its zone."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock's time."""
        ...


def is_within_last(at: datetime, now: datetime, span: timedelta) -> bool:
    """Return whether `at` lies less than `span` before `now`.

    A time in the future does not. The clock was then set back, so the age is not known, and no caller may wait until
    that time comes again.
    """
    return timedelta(0) <= now - at < span


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        import time

        time.sleep(seconds)
