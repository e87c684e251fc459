"""The clock port: time comes into a room as an argument, and into a loop from here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Gives the time and waits. A simulation jumps; a service sleeps."""

    def now(self) -> datetime:
        """The current time: UTC, aware."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock's time."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        import time

        time.sleep(seconds)
