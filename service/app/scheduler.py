"""The application's loops: which of them run, how often each repeats, and what wakes them.

`LookCadence` is the time between two polls of the cluster.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from predrain.actions.core.decision_answers import TickReport
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.pacing import find_look_seconds
from predrain.service.app.changes import ChangeKind
from predrain.service.app.life_cycle_schedule import keep_lives, note_failures
from predrain.service.config.state_directory import StateDir
from predrain.service.runtime.lease_decision import RENEWAL_SECONDS
from predrain.service.runtime.periodic_threads import FAULT_SECONDS, PeriodicThreads
from predrain.service.storage.backends import place_of_store
from predrain.service.storage.page_check import PageCheck
from predrain.service.storage.store_identity import NOTING_SECONDS, StoreMarks

if TYPE_CHECKING:
    from predrain.service.app.application import Application


@dataclass(slots=True)
class LookCadence:
    """The wait until the next poll, updated after each poll."""

    policy: Policy
    seconds: float = field(init=False)
    """Seconds until the next poll."""
    _stepped_at: datetime | None = None

    def __post_init__(self) -> None:
        self.seconds = self.policy.tick_seconds

    def note_look(self, report: TickReport) -> None:
        """Take over the result of a poll, and its duration."""
        if report.steps:
            self._stepped_at = report.at
        self.seconds = find_look_seconds(self.policy, report.seconds, self._stepped_at, report.at)


DISK_REQUEST_SECONDS = 15.0
IDLE_SECONDS = 1.0
FOLLOW_SECONDS = 1.0
"""Seconds between two reads of others' changes. A read without changes costs a few milliseconds at any store
size.
"""
TELL_SECONDS = 60.0
LIFE_SECONDS = 10.0
FAILURE_SECONDS = 600.0
WATCH_SECONDS = 6 * 3_600.0
WATCH_AGAIN_SECONDS = 60.0
"""Seconds until the next attempt after a failed judgement: no worker scores yet, or the scorebook is locked."""
RUNG_SECONDS = 20.0
"""Seconds for a begun step. It sets flags, a weight and upmap items, and clears the flags: about ten commands,
each of which a monitor commits.
"""
HOUR_SECONDS = 3_600.0
DAY_SECONDS = 86_400.0
RETAIN_FIRST_SECONDS = 60.0
"""Seconds from the start to the first retention, whose work would delay the first scores and the first page."""
WATCH_FIRST_SECONDS = 30.0
"""Seconds from the start to the first judgement of the forecast, for the same reason."""
SCORING_FIRST_SECONDS = 30.0
"""The longest wait of the page check and of the disk lives for the first scores. At 50,000 disks they cost 2 s of
processor time.
"""
RETAIN_AGAIN_SECONDS = 60.0
"""Seconds until the next attempt after a failed retention, which may have started a process for the archive."""


class Scheduler:
    """The loops of one application, according to its roles."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._loops = PeriodicThreads(lambda: application.changes.notify_change(ChangeKind.STATUS))
        self.faults = self._loops.faults
        self._arrived, self._cadence = threading.Event(), LookCadence(application.policy)
        self._scoring = threading.Event()
        """Set after the worker's first step, and where this application does not score."""
        self._marks = StoreMarks(application.log, application.store, application.clock, "predrain")
        self._pages = PageCheck(
            place_of_store(application.settings, StateDir(application.settings.service.state))
        )

    def run(self, *, scoring: bool) -> None:
        """Start the loops. Without `scoring` only the controller works."""
        parts, begin = self._application.parts, self._loops.start_loop
        if not (scoring and parts.scores):
            self._scoring.set()
        if self._application.lease is not None:
            begin("lease", self._lease, RENEWAL_SECONDS)
        if scoring and parts.scores:
            begin("worker", self._work)
            begin("latency", self._listen)
            begin("marks", self._mark)
        if scoring:
            begin("retention", self._retain, RETAIN_AGAIN_SECONDS, RETAIN_FIRST_SECONDS)
            begin("store", self._check_pages, FAULT_SECONDS, SCORING_FIRST_SECONDS, self._scoring)
            begin("lives", self._live, FAULT_SECONDS, SCORING_FIRST_SECONDS, self._scoring)
            begin("failures", self._note_failures)
        if scoring and parts.judges:
            begin("watch", self._watch, first_seconds=WATCH_FIRST_SECONDS)
            begin("disk requests", self._serve_disk_requests)
        if scoring and self._application.has_channels:
            begin("telling", self._tell)
        if parts.shares:
            begin("follow", self._follow)
        if scoring and self._application.other_clusters:
            begin("other clusters", self._ask_other_clusters)
        if self._application.has_cluster:
            if parts.acts:
                self._application.control.observer.begin_acting()
            begin("controller", self._control)

    def wake_worker(self) -> None:
        """Wake the worker because readings have arrived."""
        self._arrived.set()

    def stop(self, seconds: float) -> None:
        """End the loops and disconnect listeners.

        Each running turn has `seconds` to end. A turn of the controller that sends commands has the time of one
        more step.
        """
        self._loops.request_stop()
        if self._application.has_cluster:
            self._application.control.stop_ticking(RUNG_SECONDS)
        self.wake_worker()
        self._application.changes.close()
        self._loops.join(seconds)

    def _work(self) -> None:
        if not self._application.scorer.ready:
            self._application.start()
        self._arrived.clear()
        self._application.notice_halt()
        self._application.adopt_promoted_models()
        taken = self._application.step_worker().taken
        self._scoring.set()
        if not taken:
            self._arrived.wait(IDLE_SECONDS)

    def _listen(self) -> None:
        if not self._application.step_latencies().taken:
            self._loops.wait(IDLE_SECONDS)

    def _follow(self) -> None:
        self._application.step_others()
        self._loops.wait(FOLLOW_SECONDS)

    def _tell(self) -> None:
        # Any service can go on where another one ended: the store has what was notified.
        active = self._application.is_active
        if active:
            self._application.step_telling()
        self._loops.wait(TELL_SECONDS if active else RENEWAL_SECONDS)

    def _ask_other_clusters(self) -> None:
        self._application.step_other_clusters()
        self._loops.wait(self._application.settings.clusters.interval_seconds)

    def _live(self) -> None:
        keep_lives(self._application)
        self._loops.wait(LIFE_SECONDS)

    def _note_failures(self) -> None:
        note_failures(self._application)
        self._loops.wait(FAILURE_SECONDS)

    def _control(self) -> None:
        self._application.step_controller()
        if (report := self._application.control.report) is not None:
            self._cadence.note_look(report)
        self._loops.wait(self._cadence.seconds)

    def _serve_disk_requests(self) -> None:
        if self._application.is_active:
            self._application.step_disk_requests()
        self._loops.wait(DISK_REQUEST_SECONDS)

    def _watch(self) -> None:
        judged = self._application.update_forecast_health()
        unjudged_seconds = WATCH_AGAIN_SECONDS if self._application.ready else IDLE_SECONDS
        self._loops.wait(WATCH_SECONDS if judged else unjudged_seconds)

    def _retain(self) -> None:
        # A standby drops the old records of its own log, and takes the day's work over within an hour.
        active = self._application.is_active
        self._application.apply_retention(tidying=active)
        self._loops.wait(DAY_SECONDS if active else HOUR_SECONDS)

    def _lease(self) -> None:
        self._application.step_lease()
        self._loops.wait(RENEWAL_SECONDS)

    def _mark(self) -> None:
        self._marks.step()
        self._loops.wait(NOTING_SECONDS)

    def _check_pages(self) -> None:
        self._pages.run()
        self._loops.wait(DAY_SECONDS)
