"""The collector of one host: what is due when, from its disks and OSDs into the spool.

It owns no thread and no clock. Whoever runs it calls `look`, `measure` and `deliver`, each from one thread, and waits
as long as they say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Protocol

import structlog

from predrain.collector.delivery import Courier, NoRoom, Spool, SpoolStatus
from predrain.collector.delivery.selfmetrics import CollectorTally
from predrain.data.clock import Clock
from predrain.data.error_counts import find_risen
from predrain.data.ids import DeviceId
from predrain.data.reading import LatencySummary, Reading, Smart, Unreadable


class DiskCollector(Protocol):
    """The disks of the host (collector.disks)."""

    @property
    def nameless(self) -> tuple[str, ...]:
        """Sentences: disks that were seen and have no identity."""
        ...

    def round(self) -> Iterator[Reading]:
        """One look at every disk, readings as they come."""
        ...

    def reread_disks(self, devices: Collection[DeviceId]) -> Iterator[Reading]:
        """Read these disks once more, where they were read last; readings as they come."""
        ...

    def rescan(self) -> object:
        """Look for disks that came and went."""
        ...


class LatencyCollector(Protocol):
    """The OSDs of the host (collector.latency)."""

    @property
    def trouble(self) -> Mapping[str, str]:
        """By OSD: why the last sample has nothing of it."""
        ...

    def sample(self) -> None:
        """Read the counters."""
        ...

    def summaries(self) -> tuple[LatencySummary, ...]:
        """Windows that ended since the last call."""
        ...


@dataclass(frozen=True, slots=True)
class Intervals:
    """Seconds between two of each (design 5: SMART every hour, latency every 15 s)."""

    round: float = 3600.0
    rescan: float = 600.0
    sample: float = 15.0
    reread: float = 360.0
    """From a reading whose error counts rose to the second one of that disk. A drain is never begun on one reading: a
    second one five minutes later or more must agree, and the next round would come up to an hour later."""


class Beat:
    """When something that repeats is due, on a clock that never jumps. A tenth of jitter keeps hosts apart."""

    def __init__(self, seconds: float, random: Random, start: float) -> None:
        self._seconds, self._random, self._next = seconds, random, start

    def due(self, now: float) -> bool:
        """Whether it is time; if so, the next time is set."""
        if now < self._next:
            return False
        self._next = now + self._seconds * self._random.uniform(0.9, 1.1)
        return True

    def wait(self, now: float) -> float:
        """Seconds until it is due."""
        return max(0.0, self._next - now)


class Agent:
    """`monotonic` gives seconds that never jump; `clock` the time that readings are dated with."""

    def __init__(
        self,
        disks: DiskCollector,
        latencies: LatencyCollector,
        spool: Spool,
        courier: Courier,
        *,
        clock: Clock,
        monotonic: Callable[[], float],
        random: Random,
        intervals: Intervals,
        stopping: Callable[[], bool],
    ) -> None:
        self._disks, self._latencies, self._spool, self._courier = disks, latencies, spool, courier
        self._clock, self._monotonic, self._stopping = clock, monotonic, stopping
        self._intervals = intervals
        start = monotonic()
        self._rounds = Beat(intervals.round, random, start)
        self._rescans = Beat(intervals.rescan, random, start)
        self._sample_at = start
        self._last: dict[DeviceId, Smart] = {}
        """What each disk told last."""
        self._again: dict[DeviceId, float] = {}
        """When a disk whose error counts rose is to be read again."""
        self._accepted = self._seen = self._unreadable = 0
        self._round_seconds: float | None = None
        self._told = SpoolStatus(0, 0, 0, 0, 0, 0, None)

    def look(self) -> float:
        """Rescan and read the disks if it is time; returns the seconds to wait."""
        if self._rescans.due(self._monotonic()):
            self._disks.rescan()
        if self._rounds.due(self._monotonic()):
            self._again.clear()
            self._round()
        self._reread_disks()
        now = self._monotonic()
        again = [max(0.0, at - now) for at in self._again.values()]
        return min(self._rescans.wait(now), self._rounds.wait(now), *again)

    def measure(self) -> float:
        """Sample the OSDs, and keep the windows that ended; returns the seconds to wait."""
        self._latencies.sample()
        summaries = self._latencies.summaries()
        if summaries:
            self._spool.accept_latency(summaries, self._clock.now())
        # Counted from the start, so that a slow sample does not stretch the interval.
        now = self._monotonic()
        missed = int(max(0.0, now - self._sample_at) // self._intervals.sample)
        self._sample_at += self._intervals.sample * (missed + 1)
        return max(0.0, self._sample_at - now)

    def deliver(self) -> float:
        """Carry one batch to the sink; returns the seconds to wait."""
        return self._courier.step()

    def tally(self) -> CollectorTally:
        """How it goes; what was lost since the last call is logged."""
        try:
            spool = self._spool.standing()
        except NoRoom:
            spool = None
        if spool is not None:
            self._tell_losses(spool)
        return CollectorTally(
            readings=self._accepted,
            disks=self._seen,
            unreadable=self._unreadable,
            nameless=len(self._disks.nameless),
            silent=len(self._latencies.trouble),
            round_seconds=self._round_seconds,
            delivering=self._courier.trouble is None,
            spool=spool,
        )

    def _round(self) -> None:
        began = self._monotonic()
        seen = unreadable = 0
        for reading in self._disks.round():
            if self._keep(reading) and self._intervals.round > self._intervals.reread:
                self._again[reading.device] = self._monotonic() + self._intervals.reread
            seen += 1
            unreadable += isinstance(reading.seen, Unreadable)
            if self._stopping():
                return
        self._seen, self._unreadable = seen, unreadable
        self._round_seconds = self._monotonic() - began

    def _reread_disks(self) -> None:
        """Read the disks again whose time has come; a second rise is left to the next round."""
        now = self._monotonic()
        due = [device for device, at in self._again.items() if at <= now]
        if not due:
            return
        for device in due:
            del self._again[device]
        for reading in self._disks.reread_disks(due):
            self._keep(reading)
            if self._stopping():
                return

    def _keep(self, reading: Reading) -> bool:
        """Take a reading into the spool; whether error counts of its disk rose since the one before."""
        refused = self._spool.accept((reading,), self._clock.now())
        for sentence in refused:
            structlog.get_logger().error("reading not kept", why=sentence)
        self._accepted += not refused
        if not isinstance(reading.seen, Smart):
            return False
        before = self._last.get(reading.device)
        self._last[reading.device] = reading.seen
        return before is not None and bool(find_risen(before, reading.seen))

    def _tell_losses(self, spool: SpoolStatus) -> None:
        readings = spool.lost_readings - self._told.lost_readings
        summaries = spool.lost_summaries - self._told.lost_summaries
        self._told = spool
        if readings > 0 or summaries > 0:
            structlog.get_logger().error(
                "lost",
                readings=readings,
                latency_summaries=summaries,
                why="the spool is full or its disk is: bring the sink back, or give [collector] a larger spool",
            )
