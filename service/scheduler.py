"""The house's loops: which of them run, how often each turns, and what wakes them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from predrain.service.backends import place_of_store
from predrain.service.changes import ChangeKind
from predrain.service.drains.cadence import LookCadence
from predrain.service.lifecycle.keeping import keep_lives, note_failures
from predrain.service.periodic_threads import Loops
from predrain.service.retention import TIDYING
from predrain.service.state_directory import StateDir
from predrain.service.storage.identity import NOTING_SECONDS, StoreMarks
from predrain.service.storage.pages import PageCheck

if TYPE_CHECKING:
    from predrain.service.application import House

IDLE_SECONDS = 1.0
FOLLOW_SECONDS = 1.0
"""Between two looks at what others stored: one costs a few milliseconds when that is nothing, however much is there."""
TELL_SECONDS = 60.0
TELLING = "telling"
LIFE_SECONDS = 10.0
FAILURE_SECONDS = 600.0
WATCH_SECONDS = 6 * 3_600.0
WATCH_AGAIN_SECONDS = 60.0
"""After a look that came to nothing: no worker scores yet, or the scorebook is held."""
RUNG_SECONDS = 20.0
"""A step sets flags, a weight and pins, and clears the flags: some ten commands, each of which a monitor commits."""
HOUR_SECONDS = 3_600.0
DAY_SECONDS = 86_400.0


class Turning:
    """The loops of one house, by its parts."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._loops = Loops(lambda: house.changes.tell(ChangeKind.STATUS))
        self.faults = self._loops.faults
        self._arrived, self._cadence = threading.Event(), LookCadence(house.policy)
        self._marks = StoreMarks(house.log, house.store, house.clock, "predrain")
        self._pages = PageCheck(place_of_store(house.settings, StateDir(house.settings.service.state)))

    def run(self, *, scoring: bool) -> None:
        """Start them. Without `scoring` only the controller works."""
        parts, begin = self._house.parts, self._loops.begin
        if scoring and parts.scores:
            begin("worker", self._work)
            begin("latency", self._listen)
            begin("marks", self._mark)
        if scoring:
            begin("retention", self._retain)
            begin("store", self._check_pages)
            begin("lives", self._live)
            begin("failures", self._note_failures)
        if scoring and parts.judges:
            begin("watch", self._watch)
        if scoring and self._house.tells:
            begin("telling", self._tell)
        if parts.shares:
            begin("follow", self._follow)
        if self._house.has_cluster:
            if parts.acts:
                self._house.control.observer.begin_acting()
            begin("controller", self._control)

    def nudge(self) -> None:
        """Readings have arrived."""
        self._arrived.set()

    def stop(self, seconds: float) -> None:
        """End them, let listeners go; every turn that has begun has so long to end, and what it sends to the cluster
        by one step longer.
        """
        self._loops.end()
        if self._house.has_cluster:
            self._house.control.rest(RUNG_SECONDS)
        self.nudge()
        self._house.changes.close()
        self._loops.join(seconds)

    def _work(self) -> None:
        if not self._house.scorer.ready:
            self._house.start()
        self._arrived.clear()
        self._house.notice_halt()
        self._house.follow()
        if not self._house.step_worker().taken:
            self._arrived.wait(IDLE_SECONDS)

    def _listen(self) -> None:
        if not self._house.step_latencies().taken:
            self._loops.wait(IDLE_SECONDS)

    def _follow(self) -> None:
        self._house.step_others()
        self._loops.wait(FOLLOW_SECONDS)

    def _tell(self) -> None:
        # Of processes that share a store one tells; which one makes no difference: what was told is in the store.
        with self._house.store.alone(TELLING) as mine:
            if mine:
                self._house.step_telling()
        self._loops.wait(TELL_SECONDS)

    def _live(self) -> None:
        keep_lives(self._house)
        self._loops.wait(LIFE_SECONDS)

    def _note_failures(self) -> None:
        note_failures(self._house)
        self._loops.wait(FAILURE_SECONDS)

    def _control(self) -> None:
        self._house.step_controller()
        if (report := self._house.control.report) is not None:
            self._cadence.note_look(report)
        self._loops.wait(self._cadence.seconds)

    def _watch(self) -> None:
        judged = self._house.watch()
        unjudged_seconds = WATCH_AGAIN_SECONDS if self._house.ready else IDLE_SECONDS
        self._loops.wait(WATCH_SECONDS if judged else unjudged_seconds)

    def _retain(self) -> None:
        # Held for the day, so that no other process does the same work again; who comes later asks every hour.
        with self._house.store.alone(TIDYING) as mine:
            self._house.retain(tidying=mine)
            self._loops.wait(DAY_SECONDS if mine else HOUR_SECONDS)

    def _mark(self) -> None:
        self._marks.step()
        self._loops.wait(NOTING_SECONDS)

    def _check_pages(self) -> None:
        self._pages.run()
        self._loops.wait(DAY_SECONDS)
