"""One of any number of processes that share the readings and the latencies of a log with partitions."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import structlog

from data.clock import Clock
from data.log.port import Log
from data.store.port import Store
from service.alerts import Announcements
from service.latencies import Latencies
from service.loops import Loops
from service.memory import recall_announcements
from service.scoring.latest import Gist
from service.scoring.lineup import Lineup
from service.scoring.scorer import Scorer
from service.scoring.sender import Sender

IDLE_SECONDS = 0.5
TOLD_SECONDS = 60.0


class Working:
    """Scores what is its share until it is stopped. `killed` at any line, it loses nothing: others read it again."""

    def __init__(self, log: Log, store: Store, clock: Clock, lineup: Lineup, name: str) -> None:
        self._log, self._announcements, sender = log, Announcements(), Sender(name, clock)
        self._latencies = Latencies(log, store, clock, sender)
        self._scorer = Scorer(log, store, clock, lineup, Gist(), self._announcements, sender)
        self.counts = {"readings": 0, "dead": 0, "outlooks": 0, "alerts": 0, "latencies": 0}
        self._loops = Loops(lambda: None)

    def run(self, stopping: threading.Event) -> None:
        """Until `stopping` is set; each step that has begun is finished."""
        for name, step in (("worker", self.step), ("latency", self._listen), ("tell", self._tell)):
            self._loops.begin(name, self._idle_after(step))
        stopping.wait()
        self._loops.end()
        self._loops.join(10.0)

    def step(self) -> bool:
        """Take one batch of readings; whether there was one."""
        if self._scorer.ready:
            self._scorer.follow()
        else:
            recall_announcements(self._log, self._announcements)
            self._scorer.start(whole=False)
        worked = self._scorer.step()
        self.counts["readings"] += worked.taken
        self.counts["dead"] += worked.dead
        self.counts["outlooks"] += worked.outlooks
        self.counts["alerts"] += worked.alerts
        return bool(worked.taken)

    def _listen(self) -> bool:
        kept = self._latencies.step()
        self.counts["latencies"] += kept.summaries
        self.counts["dead"] += kept.dead
        return bool(kept.taken)

    def _tell(self) -> bool:
        self._loops.wait(TOLD_SECONDS)
        structlog.get_logger().info("worked", **self.counts, **self._loops.faults)
        return True

    def _idle_after(self, step: Callable[[], bool]) -> Callable[[], None]:
        def turn() -> None:
            if not step():
                self._loops.wait(IDLE_SECONDS)

        return turn


def until_told() -> threading.Event:
    """Set by SIGINT and SIGTERM. For the main thread."""
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    return stopping
