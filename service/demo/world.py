"""The world of the demo: time, disks that die, people who swap them, and a house that may be watching or not.

The same world runs twice from one seed: with predrain (a house) and without. Disks die on the hour that seed
and history give; a technician swaps a dead disk two days later and a drained one the day after it was verified.
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
from predrain.service.application import House
from predrain.service.demo.clock import SimulatedClock
from predrain.service.demo.fleet import DemoFleet, Drive, at_hour
from predrain.service.demo.ledger import DemoLedger
from predrain.service.lifecycle.keeping import keep_lives, note_failures

READING_HOURS = (1, 7, 13, 19)
"""Each disk is read daily at one of these; one that is not good, at each of them."""
TICK = timedelta(minutes=10)
"""How often the controller looks while PGs are on their way (it may look every 10 s; a PG takes an hour)..."""
LOOK = timedelta(hours=1)
"""...and while nothing moves."""
SWAP_DEAD = timedelta(days=2)
SWAP_DRAINED = timedelta(days=1)
HEALING_STEP = timedelta(minutes=20)

ENDED_WELL = frozenset({DrainState.VERIFIED, DrainState.HANDED_OVER})
MOVING = frozenset(
    {
        DrainState.APPROVED,
        DrainState.PREPARING,
        DrainState.DRAINING,
        DrainState.DRAINED,
        DrainState.CANCELLING,
    }
)


@dataclass(frozen=True, slots=True)
class Calendar:
    """First day shown and the day after the last one."""

    start: date
    end: date

    @property
    def days(self) -> int:
        """Days shown."""
        return (self.end - self.start).days


class DemoWorld:
    """One run. Mutable; `days` is its loop."""

    def __init__(self, spec: ClusterSpec, fleet: DemoFleet, calendar: Calendar, seed: int) -> None:
        self.fleet, self.calendar = fleet, calendar
        self.ledger = DemoLedger()
        self.clock = SimulatedClock(at_hour(calendar.start, 0))
        seated = {osd: (drive.device, drive.model) for osd, drive in fleet.seats.items() if drive is not None}
        self.cluster = SimulatedCluster(spec.with_devices(seated), seed, start=self.clock.now())
        self._hosts = {osd.id: osd.host for osd in spec.osds}
        rng = np.random.default_rng(seed + 1)
        self._deaths = [
            (at_hour(drive.death, 14 + float(rng.uniform(0, 9))), osd, drive)
            for osd, drive in fleet.doomed
            if drive.death is not None and drive.death < calendar.end
        ]
        self._deaths.sort(key=lambda death: death[0])
        self._swaps: list[tuple[datetime, OsdId, Drive]] = []
        self._verified: set[str] = set()
        self._healing = False

    def warm_up(self, house: House, since: date) -> None:
        """What was read before the demo begins, as an import of history would have stored it."""
        readings = [
            reading
            for osd in self.fleet.seats
            for day in _days(since, self.calendar.start)
            if (reading := self.fleet.reading(osd, self._hosts[osd], at_hour(day, self._hour(osd))))
            is not None
        ]
        house.store.add_readings(readings)

    def days(
        self, house: House | None, passed: Callable[[timedelta], None] = lambda _: None
    ) -> Iterator[int]:
        """Run to the end; yields the number of each day when it is over. Without a house nobody watches.

        passed: called after each stretch of simulated time, to hold the world to a pace.
        """
        for number in range(self.calendar.days):
            end = at_hour(self.calendar.start, 0) + timedelta(days=number + 1)
            while (before := self.clock.now()) < end:
                self._step(house, end)
                passed(self.clock.now() - before)
            yield number + 1

    def _step(self, house: House | None, end: datetime) -> None:
        """On to the next thing that happens, and let it happen."""
        now = self.clock.now()
        states = self._follow(house)
        due = [end, self._next_reading(now), now + LOOK]
        if states & MOVING:
            due.append(now + TICK)
        if self._healing:
            due.append(now + HEALING_STEP)
        due += [when for when, *_ in (*self._deaths[:1], *self._swaps[:1])]
        until = max(now, min(due))
        self.cluster.advance((until - now).total_seconds())
        self.clock.move_to(until)
        self.ledger.sample(self.cluster.client())
        if self._healing:
            self._healing = self.ledger.degraded(self.cluster.truth(), (until - now).total_seconds())
        while self._deaths and self._deaths[0][0] <= until:
            self._die(*self._deaths.pop(0), house)
        while self._swaps and self._swaps[0][0] <= until:
            self._swap(*self._swaps.pop(0)[1:])
        if house is not None:
            if until.hour in READING_HOURS and until.minute == 0 and until.second == 0:
                self._read(house, until)
            house.step_controller()

    def _next_reading(self, now: datetime) -> datetime:
        hours = [at_hour(now.date(), hour) for hour in READING_HOURS]
        return next((when for when in hours if when > now), at_hour(now.date() + timedelta(days=1), 0))

    def _hour(self, osd: OsdId) -> int:
        return READING_HOURS[osd % len(READING_HOURS)]

    def _read(self, house: House, now: datetime) -> None:
        readings = []
        for osd, drive in self.fleet.seats.items():
            if drive is None or osd in self.fleet.died_of:
                continue
            outlook = house.fleet.outlook(drive.device)
            if self._hour(osd) == now.hour or (outlook is not None and outlook.severity is not Status.GOOD):
                reading = self.fleet.reading(osd, self._hosts[osd], now)
                if reading is not None:
                    readings.append(reading)
        house.ingest(readings)
        while house.step_worker().taken:
            pass
        keep_lives(house)
        note_failures(house)

    def _follow(self, house: House | None) -> set[DrainState]:
        """Note drains that were verified and order the swap; the states of all drains."""
        drains = () if house is None else house.store.drains()
        for drain in drains:
            if drain.state in ENDED_WELL and drain.id not in self._verified:
                self._verified.add(drain.id)
                self._drained(drain)
        return {drain.state for drain in drains}

    def _drained(self, drain: Drain) -> None:
        osd = drain.osds[0]
        drive = self.fleet.seats[osd]
        if drive is None or drive.device != drain.device or osd in self.fleet.died_of:
            return
        self.ledger.drained(drive, self.clock.now(), drain.progress.moved_bytes)
        self._swaps.append((self.clock.now() + SWAP_DRAINED, osd, drive))
        self._swaps.sort(key=lambda swap: swap[0])

    def _die(self, when: datetime, osd: OsdId, drive: Drive, house: House | None) -> None:
        """The disk dies in its slot; if it was drained and swapped before, only the ledger hears of it."""
        seated = self.fleet.seats[osd]
        if seated is None or seated.device != drive.device:
            self.ledger.died(drive, when, silent=self.fleet.silent(drive), share_moved=1.0)
            return
        moved = 0.0
        if house is not None:
            moved = max(
                (_share(drain) for drain in house.store.drains() if drain.device == drive.device), default=0.0
            )
        self.ledger.died(drive, when, silent=self.fleet.silent(drive), share_moved=moved)
        self.fleet.died_of[osd] = drive
        self.cluster.fail_osd(osd)
        self._healing = True
        if not any(swap[1] == osd for swap in self._swaps):
            self._swaps.append((when + SWAP_DEAD, osd, drive))
            self._swaps.sort(key=lambda swap: swap[0])

    def _swap(self, osd: OsdId, drive: Drive) -> None:
        """A new disk in the slot. The slot stays empty when there is no spare."""
        if self.fleet.seats[osd] is not drive:
            return
        self.fleet.died_of.pop(osd, None)
        spare = self.fleet.swap(osd)
        if spare is None:
            self.cluster.fail_osd(osd)
            return
        self.cluster.replace(osd, device=spare.device, model=spare.model)


def _share(drain: Drain) -> float:
    if drain.state in ENDED_WELL or drain.state is DrainState.DRAINED:
        return 1.0
    planned = drain.progress.planned_bytes
    return drain.progress.moved_bytes / planned if planned else 0.0


def _days(since: date, until: date) -> list[date]:
    return [since + timedelta(days=n) for n in range((until - since).days)]
