"""One of any number of worker processes that share the readings and latencies of a log with partitions."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta

import structlog

from predrain.data.clock import Clock
from predrain.data.log.log_port import Log
from predrain.data.residence import ResidenceLimits
from predrain.data.store.store_port import Store
from predrain.service.app.roles import WORKING
from predrain.service.forecasting.deployed_models import DeployedModels
from predrain.service.forecasting.newest_outlooks import NewestOutlookSummaries
from predrain.service.forecasting.scorer import Scorer
from predrain.service.forecasting.worker import NAMED_LIMITS
from predrain.service.notifications.channel import Deliveries
from predrain.service.runtime.periodic_threads import PeriodicThreads
from predrain.service.storage.record_sender import RecordSender
from predrain.service.storage.store_identity import NOTING_SECONDS, StoreMarks
from predrain.service.streams.latency_ingest import LatencyIngest
from predrain.service.streams.log_recall import recall_announcements
from predrain.service.streams.outlook_announcements import Announcements

IDLE_SECONDS = 0.5
TOLD_SECONDS = 60.0


class WorkerProcess:
    """Scores its share until it is stopped. A worker that is killed at any line loses nothing: others read its
    records again.
    """

    def __init__(
        self,
        log: Log,
        store: Store,
        clock: Clock,
        deployed_models: DeployedModels,
        name: str,
        limits: ResidenceLimits = NAMED_LIMITS,
    ) -> None:
        self.store, self.clock, self.deployed_models, self.parts = store, clock, deployed_models, WORKING
        self._log, self._announcements, sender = log, Announcements(), RecordSender(name, clock)
        self._latencies = LatencyIngest(log, store, clock, sender)
        self._scorer = Scorer(
            log,
            store,
            clock,
            deployed_models,
            NewestOutlookSummaries(),
            self._announcements,
            sender,
            limits=limits,
            shared=True,
        )
        self.counts = {"worked": 0, "dead": 0, "outlooks": 0, "alerts": 0}
        self.counts |= {"latencies": 0, "latencies_dead": 0, "latencies_lost": 0}
        self.waited: timedelta | None = None
        """The time that the newest reading of the last step had waited; None before the first step."""
        self.deliveries: Mapping[str, Deliveries] = {}
        """Empty: a controller notifies of all drives, and a worker notifies nobody."""
        self._marks = StoreMarks(log, store, clock, name)
        self._loops = PeriodicThreads(lambda: None)
        self.faults = self._loops.faults

    @property
    def ready(self) -> bool:
        """True if the forecaster is loaded."""
        return self._scorer.ready

    @property
    def bundle_name(self) -> str | None:
        """The bundle that scores; None before it is loaded."""
        return self.deployed_models.champion.name if self.ready and self.deployed_models.champion else None

    @property
    def troubles(self) -> dict[str, str]:
        """A sentence for each part that is broken although disks are scored."""
        return self._scorer.troubles

    def run(self, stopping: threading.Event) -> None:
        """Work until `stopping` is set; each step that has begun is finished."""
        steps = (
            ("worker", self.step),
            ("latency", self._listen),
            ("tell", self._tell),
            ("marks", self._mark),
        )
        for name, step in steps:
            self._loops.start_loop(name, self._idle_after(step))
        stopping.wait()
        self._loops.request_stop()
        self._loops.join(10.0)

    def step(self) -> bool:
        """Process one batch of readings; return whether there was one."""
        if self._scorer.ready:
            self._scorer.adopt_promoted_models()
        else:
            recall_announcements(self._log, self._announcements)
            self._scorer.start()
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
    """Return an event that SIGINT and SIGTERM set. For the main thread."""
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    return stopping
