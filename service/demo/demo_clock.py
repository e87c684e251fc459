"""The demo's clock, which stands still until the world moves it."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta


class SimulatedClock:
    """A clock port whose time is set by the world. `sleep` waits for simulated time to pass."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._moved = threading.Condition()

    def now(self) -> datetime:
        """Return the world's time."""
        return self._now

    def move_to(self, when: datetime) -> None:
        """Set the time; an earlier time changes nothing."""
        with self._moved:
            self._now = max(self._now, when)
            self._moved.notify_all()

    def sleep(self, seconds: float) -> None:
        """Return once the world has moved on by `seconds`."""
        until = self._now + timedelta(seconds=seconds)
        with self._moved:
            while self._now < until:
                self._moved.wait(1.0)


class DemoPace:
    """Holds a loop to a number of real seconds per simulated day; None runs as fast as possible."""

    def __init__(self, seconds_per_day: float | None) -> None:
        self.seconds_per_day = seconds_per_day
        self._due = time.monotonic()

    def wait(self, simulated: timedelta) -> None:
        """Sleep until this much simulated time has taken its real time; a delay is not made up for."""
        if self.seconds_per_day is None:
            return
        self._due = max(
            self._due + simulated.total_seconds() / 86400 * self.seconds_per_day, time.monotonic()
        )
        time.sleep(max(0.0, self._due - time.monotonic()))
