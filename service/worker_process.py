"""One of any number of processes that share the readings and the latencies of a log with partitions."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta

import structlog

from predrain.data.clock import Clock
from predrain.data.log.port import Log
from predrain.data.residence import ResidenceLimits
from predrain.data.store.port import Store
from predrain.service.latency_ingest import LatencyIngest
from predrain.service.log_recall import recall_announcements
from predrain.service.notifications.channel import Deliveries
from predrain.service.outlook_announcements import Announcements
from predrain.service.periodic_threads import Loops
from predrain.service.roles import WORKING
from predrain.service.scoring.deployed_models import Lineup
from predrain.service.scoring.latest import Gist
from predrain.service.scoring.scorer import Scorer
from predrain.service.scoring.sender import Sender
from predrain.service.scoring.worker import NAMED_LIMITS
from predrain.service.storage.identity import NOTING_SECONDS, StoreMarks

IDLE_SECONDS = 0.5
TOLD_SECONDS = 60.0


class Working:
    """Scores what is its share until it is stopped. `killed` at any line, it loses nothing: others read it again."""

    def __init__(
        self,
        log: Log,
        store: Store,
        clock: Clock,
        lineup: Lineup,
        name: str,
        limits: ResidenceLimits = NAMED_LIMITS,
    ) -> None:
        self.store, self.clock, self.lineup, self.parts = store, clock, lineup, WORKING
        self._log, self._announcements, sender = log, Announcements(), Sender(name, clock)
        self._latencies = LatencyIngest(log, store, clock, sender)
        self._scorer = Scorer(
            log, store, clock, lineup, Gist(), self._announcements, sender, limits=limits, shared=True
        )
        self.counts = {"worked": 0, "dead": 0, "outlooks": 0, "alerts": 0}
        self.counts |= {"latencies": 0, "latencies_dead": 0, "latencies_lost": 0}
        self.waited: timedelta | None = None
        """How long what was judged last had waited; None before the first step."""
        self.deliveries: Mapping[str, Deliveries] = {}
        """A worker tells nobody: a controller does, of all drives."""
        self._marks = StoreMarks(log, store, clock, name)
        self._loops = Loops(lambda: None)
        self.faults = self._loops.faults

    @property
    def ready(self) -> bool:
        """Whether the forecaster is loaded."""
        return self._scorer.ready

    @property
    def bundle_name(self) -> str | None:
        """The bundle that scores; None before it is loaded."""
        return self.lineup.champion.name if self.ready and self.lineup.champion else None

    @property
    def troubles(self) -> dict[str, str]:
        """What is wrong by part while disks are scored all the same."""
        return self._scorer.troubles

    def run(self, stopping: threading.Event) -> None:
        """Until `stopping` is set; each step that has begun is finished."""
        steps = (
            ("worker", self.step),
            ("latency", self._listen),
            ("tell", self._tell),
            ("marks", self._mark),
        )
        for name, step in steps:
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
        self.waited = worked.waited
        self.counts["worked"] += worked.taken
        self.counts["dead"] += worked.dead
        self.counts["outlooks"] += worked.outlooks
        self.counts["alerts"] += worked.alerts
        return bool(worked.taken)

    def _listen(self) -> bool:
        kept = self._latencies.step()
        self.counts["latencies"] += kept.summaries
        self.counts["latencies_dead"] += kept.dead
        self.counts["latencies_lost"] += kept.lost
        return bool(kept.taken)

    def _tell(self) -> bool:
        self._loops.wait(TOLD_SECONDS)
        structlog.get_logger().info("worked", **self.counts, **self.faults)
        return True

    def _mark(self) -> bool:
        self._marks.step()
        self._loops.wait(NOTING_SECONDS)
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
