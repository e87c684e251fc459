"""How fast maps came and how long the monitors took to answer, by this process's own looks and commands."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic

from predrain.actions.cluster.port import Cluster, Command, CommandResult
from predrain.actions.cluster.view import ClusterView

OVER = timedelta(minutes=1)
"""Rates are means over so long."""
_ENOUGH = timedelta(seconds=30)


@dataclass(slots=True)
class MapPace:
    """Epochs at the looks of the last minute, and what our commands took within it."""

    clock: Callable[[], float] = monotonic
    _looks: deque[tuple[datetime, int]] = field(default_factory=deque)
    _answers: deque[tuple[float, float]] = field(default_factory=deque)

    def note(self, epoch: int, now: datetime) -> None:
        """A look found this epoch. A clock that was set back begins anew."""
        if self._looks and now < self._looks[-1][0]:
            self._looks.clear()
        self._looks.append((now, epoch))
        while len(self._looks) > 2 and now - self._looks[1][0] >= OVER:
            self._looks.popleft()

    def per_second(self) -> float | None:
        """Maps a second over the last minute; None before half of it was seen."""
        if not self._looks:
            return None
        (began, first), (ended, last) = self._looks[0], self._looks[-1]
        if ended - began < _ENOUGH:
            return None
        return (last - first) / (ended - began).total_seconds()

    def slowest(self) -> float:
        """Seconds that the slowest command of the last minute took; 0 without one."""
        since = self.clock() - OVER.total_seconds()
        while self._answers and self._answers[0][0] < since:
            self._answers.popleft()
        return max((seconds for _, seconds in self._answers), default=0.0)

    def note_answer(self, seconds: float) -> None:
        """A command of ours took so long to be answered."""
        self._answers.append((self.clock(), seconds))


@dataclass(slots=True)
class TimedCluster:
    """A cluster whose commands are timed."""

    cluster: Cluster
    pace: MapPace

    def view(self) -> ClusterView:
        """Look. Raises ClusterUnreachable."""
        return self.cluster.view()

    def apply(self, command: Command) -> CommandResult:
        """Send one command. Raises ClusterUnreachable."""
        began = self.pace.clock()
        try:
            return self.cluster.apply(command)
        finally:
            self.pace.note_answer(self.pace.clock() - began)
