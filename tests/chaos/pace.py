"""Whether the machine took the load: what was due, read, delivered and scored, and how long the rest of it took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

ENOUGH_READ = 0.99
"""Part of what was due that has to be read, for the load to be the one that was asked for."""
LONGEST_WAIT_SECONDS = 10.0
"""As many seconds of the load may wait for their outlooks when the load ends."""
STILL_SECONDS = 60.0
"""When nothing was scored for so long, nothing more comes."""


@dataclass(frozen=True, slots=True)
class LoadPace:
    """The load of one run. "At its end" means the time at which the hosts were asked to end."""

    seconds: float
    """From the start of the hosts to its end."""
    due: int
    """Readings that were due from the load generators by its end."""
    read: int
    """Of them, those that the load generators read and their spools accepted."""
    accepted: int
    """Readings that the spools of all hosts accepted."""
    undelivered: int
    """Of all accepted ones, those that lay in spools at its end."""
    scored: int
    """Outlooks that were kept at its end."""
    drain_seconds: float
    """From its end until the last outlook was seen."""

    @property
    def accepted_per_second(self) -> float:
        """Readings that the spools accepted."""
        return self.accepted / self.seconds

    @property
    def scored_per_second(self) -> float:
        """Outlooks that were made while the load was on."""
        return self.scored / self.seconds

    @property
    def backlog(self) -> int:
        """Accepted readings without an outlook at its end, delivered or not."""
        return max(0, self.accepted - self.scored)

    @property
    def is_load_complete(self) -> bool:
        """Return True if the load generators read at least ENOUGH_READ of the readings that were due."""
        return self.read >= ENOUGH_READ * self.due

    @property
    def has_kept_up(self) -> bool:
        """Return True if delivery and scoring kept up: the backlog was at most LONGEST_WAIT_SECONDS of the load."""
        return self.backlog <= LONGEST_WAIT_SECONDS * self.accepted_per_second


def await_scored(count_scored: Callable[[], int], accepted: int) -> float:
    """Wait until `accepted` outlooks are kept, or no more come; returns when the last one was seen (monotonic)."""
    count, grew = -1, time.monotonic()
    while True:
        asked = time.monotonic()
        now = count_scored()
        answered = time.monotonic()
        if now > count:
            count, grew = now, answered
        if count >= accepted or answered > grew + STILL_SECONDS:
            return grew
        time.sleep(max(0.5, 5 * (answered - asked)))  # rows are counted one by one, by who also has to score
