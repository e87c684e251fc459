"""The world of the demo: time, disks that die, technicians who swap them, and an application that may be absent.

The same world runs twice from one seed: with predrain (an application) and without. Disks die at the hour that
seed and history give. A technician swaps a dead disk two days later, and a drained one the day after it was
verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import numpy as np

from predrain.actions.simulator import ClusterSpec, SimulatedCluster
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import OsdId
from predrain.data.outlook import Status
from predrain.service.app.application import Application
from predrain.service.app.life_cycle_schedule import keep_lives, note_failures
from predrain.service.app.retention import drop_expired_data
from predrain.service.demo.demo_clock import SimulatedClock
from predrain.service.demo.demo_counts import DemoLedger
from predrain.service.demo.demo_fleet import DemoFleet, Drive, at_hour

READING_HOURS = (1, 7, 13, 19)
"""Each disk is read daily at one of these hours (UTC); a disk that is not good is read at each of them."""
TICK, LARGE_TICK = timedelta(minutes=10), timedelta(minutes=30)
"""The period of the controller while PGs move. A real one may poll every 10 s; a PG takes an hour. `LARGE_TICK` is that
of a cluster of more than `LARGE` OSDs, where a poll takes a tenth of a second: 160 days have 23,000 ticks of ten
minutes.
"""
LARGE = 1_000
LOOK = timedelta(hours=1)
"""The period of the controller while nothing moves."""
SWAP_DEAD = timedelta(days=2)
SWAP_DRAINED = timedelta(days=1)
HEALING_STEP = timedelta(minutes=20)
"""The longest period in which PGs without all copies are counted, or the tick if that is longer."""

ENDED_WELL = frozenset({DrainState.VERIFIED, DrainState.HANDED_OVER})
MOVING = frozenset(
    {
        DrainState.PREPARING,
        DrainState.DRAINING,
        DrainState.DRAINED,
        DrainState.CANCELLING,
    }
)
"""States in which the controller polls every `DemoWorld.tick`. An approved drain that waits moves nothing."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """The first day shown and the day after the last one."""

    start: date
    end: date

    @property
    def days(self) -> int:
        """The number of days shown."""
        return (self.end - self.start).days


class DemoWorld:
    """One run of the demo. Mutable; `run_days` is its loop."""

    def __init__(self, spec: ClusterSpec, fleet: DemoFleet, calendar: Calendar, seed: int) -> None:
        self.fleet, self.calendar = fleet, calendar
        self.tick = TICK if len(spec.osds) <= LARGE else LARGE_TICK
        self.ledger = DemoLedger()
        self.clock = SimulatedClock(at_hour(calendar.start, 0))
        seated = {
            osd: (drive.device, drive.model) for osd, drive in fleet.drives.items() if drive is not None
        }
        self.cluster = SimulatedCluster(spec.with_devices(seated), seed, start=self.clock.now())
        self._hosts = {osd.id: osd.host for osd in spec.osds}
        rng = np.random.default_rng(seed + 1)
        self._deaths = [
            (at_hour(drive.death, 14 + float(rng.uniform(0, 9))), osd, drive)
            for osd, drive in fleet.dying_drives
            if drive.death is not None and drive.death < calendar.end
        ]
        self._deaths.sort(key=lambda death: death[0])
        self._swaps: list[tuple[datetime, OsdId, Drive]] = []
        self._verified: set[str] = set()
        self._healing = False

    def warm_up(self, application: Application, since: date) -> None:
        """Store the readings from before the demo, as an import of history would have stored them."""
        readings = [
            reading
            for osd in self.fleet.drives
            for day in _list_days(since, self.calendar.start)
            if (reading := self.fleet.reading(osd, self._hosts[osd], at_hour(day, self._hour(osd))))
            is not None
        ]
        application.store.add_readings(readings)

    def run_days(
        self, application: Application | None, passed: Callable[[timedelta], None] = lambda _: None
    ) -> Iterator[int]:
        """Run to the end; yield the number of each day once the day is over. Without an application no disk is
        drained.

        passed: called after each stretch of simulated time, to hold the world to a pace.
        """
        for number in range(self.calendar.days):
            end = at_hour(self.calendar.start, 0) + timedelta(days=number + 1)
            while (before := self.clock.now()) < end:
                self._step(application, end)
                passed(self.clock.now() - before)
            if application is not None:
                # The log is in memory: the readings of 6,000 disks would fill it within 93 days.
                drop_expired_data(application.log, None, application.settings.retention, self.clock.now())
            yield number + 1

    def _step(self, application: Application | None, end: datetime) -> None:
        """Advance to the next event and apply it."""
        now = self.clock.now()
        states = self._follow(application)
        due = [end, self._next_reading(now), now + LOOK]
        if states & MOVING:
            due.append(now + self.tick)
        if self._healing:
            due.append(now + max(self.tick, HEALING_STEP))
        due += [when for when, *_ in (*self._deaths[:1], *self._swaps[:1])]
        until = max(now, min(due))
        self.cluster.advance((until - now).total_seconds())
        self.clock.move_to(until)
        self.ledger.add_client_load(self.cluster.take_client_load())
        if self._healing:
            seconds = (until - now).total_seconds()
            self._healing = self.ledger.count_degraded_pgs(self.cluster.thin_pgs, seconds)
        while self._deaths and self._deaths[0][0] <= until:
            self._die(*self._deaths.pop(0), application)
        while self._swaps and self._swaps[0][0] <= until:
            self._swap(*self._swaps.pop(0)[1:])
        if application is not None:
            if until.hour in READING_HOURS and until.minute == 0 and until.second == 0:
                self._read(application, until)
            application.step_controller()

    def _next_reading(self, now: datetime) -> datetime:
        hours = [at_hour(now.date(), hour) for hour in READING_HOURS]
        return next((when for when in hours if when > now), at_hour(now.date() + timedelta(days=1), 0))

    def _hour(self, osd: OsdId) -> int:
        return READING_HOURS[osd % len(READING_HOURS)]

    def _read(self, application: Application, now: datetime) -> None:
        readings = []
        for osd, drive in self.fleet.drives.items():
            if drive is None or osd in self.fleet.died_of:
                continue
            outlook = application.fleet.outlook(drive.device)
            if self._hour(osd) == now.hour or (outlook is not None and outlook.severity is not Status.GOOD):
                reading = self.fleet.reading(osd, self._hosts[osd], now)
                if reading is not None:
                    readings.append(reading)
        application.ingest(readings)
        while application.step_worker().taken:
            pass
        keep_lives(application)
        note_failures(application)

    def _follow(self, application: Application | None) -> set[DrainState]:
        """Order the swap for each drain that was verified since; return the states of all drains."""
        drains = () if application is None else application.store.drains()
        for drain in drains:
            if drain.state in ENDED_WELL and drain.id not in self._verified:
                self._verified.add(drain.id)
                self._drained(drain)
        return {drain.state for drain in drains}

    def _drained(self, drain: Drain) -> None:
        osd = drain.osds[0]
        drive = self.fleet.drives[osd]
        if drive is None or drive.device != drain.device or osd in self.fleet.died_of:
            return
        self.ledger.record_emptied_drive(drive, self.clock.now(), drain.progress.moved_bytes)
        self._swaps.append((self.clock.now() + SWAP_DRAINED, osd, drive))
        self._swaps.sort(key=lambda swap: swap[0])

    def _die(self, when: datetime, osd: OsdId, drive: Drive, application: Application | None) -> None:
        """Let the disk die in its slot. If it was drained and swapped before, only record its death."""
        seated = self.fleet.drives[osd]
        if seated is None or seated.device != drive.device:
            self.ledger.record_death(drive, when, silent=self.fleet.is_silent_failure(drive), share_moved=1.0)
            return
        moved = 0.0
        if application is not None:
            moved = max(
                (
                    _compute_moved_share(drain)
                    for drain in application.store.drains()
                    if drain.device == drive.device
                ),
                default=0.0,
            )
        self.ledger.record_death(drive, when, silent=self.fleet.is_silent_failure(drive), share_moved=moved)
        self.fleet.died_of[osd] = drive
        self.cluster.fail_osd(osd)
        self._healing = True
        if not any(swap[1] == osd for swap in self._swaps):
            self._swaps.append((when + SWAP_DEAD, osd, drive))
            self._swaps.sort(key=lambda swap: swap[0])

    def _swap(self, osd: OsdId, drive: Drive) -> None:
        """Put a new disk into the slot. The slot stays empty if there is no spare."""
        if self.fleet.drives[osd] is not drive:
            return
        self.fleet.died_of.pop(osd, None)
        spare = self.fleet.swap(osd)
        if spare is None:
            self.cluster.fail_osd(osd)
            return
        self.cluster.replace(osd, device=spare.device, model=spare.model)


def _compute_moved_share(drain: Drain) -> float:
    if drain.state in ENDED_WELL or drain.state is DrainState.DRAINED:
        return 1.0
    planned = drain.progress.planned_bytes
    return drain.progress.moved_bytes / planned if planned else 0.0


def _list_days(since: date, until: date) -> list[date]:
    return [since + timedelta(days=n) for n in range((until - since).days)]
