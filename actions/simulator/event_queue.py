"""The simulation's time: a queue of actions that run in order; time jumps from one to the next."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

Action = Callable[[], None]


class Timeline:
    """Seconds since the start, and the scheduled actions. Actions of equal time run in the order of
    scheduling.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Action]] = []
        self._order = count()

    def schedule_at(self, when: float, action: Action) -> None:
        """Run `action` at `when`; a time in the past means as soon as possible."""
        heapq.heappush(self._queue, (max(when, self.now), next(self._order), action))

    def schedule_after(self, seconds: float, action: Action) -> None:
        """Run `action` in `seconds`."""
        self.schedule_at(self.now + seconds, action)

    def run_until(self, when: float, between: Callable[[float], None]) -> None:
        """Jump from event to event up to `when`; `between(seconds)` is called for each period in between."""
        while self._queue and self._queue[0][0] <= when:
            moment, _, action = heapq.heappop(self._queue)
            if moment > self.now:
                between(moment - self.now)
                self.now = moment
            action()
        if when > self.now:
            between(when - self.now)
            self.now = when
