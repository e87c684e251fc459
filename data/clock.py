"""The clock port: time comes into a room as an argument, and into a loop from here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Gives the time and waits. A simulation jumps; a service sleeps."""

    def now(self) -> datetime:
        """The current time: UTC, aware."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock's time."""
        ...


def lately(at: datetime, now: datetime, span: timedelta) -> bool:
    """Whether `at` lies less than `span` before `now`. A time of the future does not: the clock was set back since, so
    how long ago it was is not known, and nobody may wait until it comes again.
    """
    return timedelta(0) <= now - at < span


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        import time

        time.sleep(seconds)
