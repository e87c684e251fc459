"""The collector of one host: it decides when each disk and OSD is read, and puts the results into the spool.

`Agent` owns no thread and no clock. The caller runs `poll_disks`, `sample_latencies` and `deliver`, each in a thread
of its own, and waits the returned number of seconds between two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Protocol

import structlog

from predrain.collector.delivery import Shipper, Spool, SpoolDiskFull, SpoolStatus
from predrain.collector.delivery.collector_metrics import CollectorTally
from predrain.data.clock import Clock
from predrain.data.error_counts import find_risen
from predrain.data.ids import DeviceId
from predrain.data.latency_windows import LatencySummary
from predrain.data.reading import Reading, Smart, Unreadable


class DiskCollector(Protocol):
    """The disks of the host (collector.disks)."""

    @property
    def nameless(self) -> tuple[str, ...]:
        """Sentences about disks that were seen but have no identity."""
        ...

    def read_disks(self) -> Iterator[Reading]:
        """Read every disk once, and yield each reading as it arrives."""
        ...

    def reread_disks(self, devices: Collection[DeviceId]) -> Iterator[Reading]:
        """Read these disks once more at the place where each was read last, and yield each reading as it arrives."""
        ...

    def rescan(self) -> object:
        """Look for disks that were added or removed."""
        ...


class LatencyCollector(Protocol):
    """The OSDs of the host (collector.latency)."""

    @property
    def trouble(self) -> Mapping[str, str]:
        """For each admin socket the reason why the last sample holds nothing of its OSD."""
        ...

    def sample(self) -> None:
        """Read the counters."""
        ...

    def take_summaries(self) -> tuple[LatencySummary, ...]:
        """Return the windows that ended since the last call."""
        ...


@dataclass(frozen=True, slots=True)
class Intervals:
    """Seconds between two runs of each task (design 5: SMART every hour, latency every 15 s)."""

    round: float = 3600.0
    rescan: float = 600.0
    sample: float = 15.0
    reread: float = 360.0
    """Seconds from a reading with risen error counts to the second reading of that disk. A drain never begins on one
    reading: a second reading at least five minutes later must agree, and the next round would come up to an hour
    later."""


class RepeatTimer:
    """Says when a repeated task is due, on a clock that never jumps. A jitter of 10 % keeps the hosts apart."""

    def __init__(self, seconds: float, random: Random, start: float) -> None:
        self._seconds, self._random, self._next = seconds, random, start

    def is_due(self, now: float) -> bool:
        """Return whether the task is due, and set its next time if it is."""
        if now < self._next:
            return False
        self._next = now + self._seconds * self._random.uniform(0.9, 1.1)
        return True

    def compute_wait_seconds(self, now: float) -> float:
        """Return the seconds until the task is due."""
        return max(0.0, self._next - now)


class Agent:
    """The collector's loop bodies.

    `monotonic` gives seconds that never jump; `clock` gives the time that dates readings.
    """

    def __init__(
        self,
        disks: DiskCollector,
        latencies: LatencyCollector,
        spool: Spool,
        shipper: Shipper,
        *,
        clock: Clock,
        monotonic: Callable[[], float],
        random: Random,
        intervals: Intervals,
        stopping: Callable[[], bool],
    ) -> None:
        self._disks, self._latencies, self._spool, self._shipper = disks, latencies, spool, shipper
        self._clock, self._monotonic, self._stopping = clock, monotonic, stopping
        self._intervals = intervals
        start = monotonic()
        self._rounds = RepeatTimer(intervals.round, random, start)
        self._rescans = RepeatTimer(intervals.rescan, random, start)
        self._sample_at = start
        self._last: dict[DeviceId, Smart] = {}
        """The last SMART state of each disk."""
        self._again: dict[DeviceId, float] = {}
        """The time at which a disk with risen error counts is to be read again."""
        self._accepted = self._seen = self._unreadable = 0
        self._round_seconds: float | None = None
        self._told = SpoolStatus(0, 0, 0, 0, 0, 0, None)

    def poll_disks(self) -> float:
        """Rescan and read the disks if they are due; return the seconds to wait."""
        if self._rescans.is_due(self._monotonic()):
            self._disks.rescan()
        if self._rounds.is_due(self._monotonic()):
            self._again.clear()
            self._round()
        self._reread_disks()
        now = self._monotonic()
        again = [max(0.0, at - now) for at in self._again.values()]
        return min(self._rescans.compute_wait_seconds(now), self._rounds.compute_wait_seconds(now), *again)

    def sample_latencies(self) -> float:
        """Sample the OSDs, and put the windows that ended into the spool; return the seconds to wait."""
        self._latencies.sample()
        summaries = self._latencies.take_summaries()
        if summaries:
            self._spool.accept_latency(summaries, self._clock.now())
        # The next time is counted from the start, so that a slow sample does not stretch the interval.
        now = self._monotonic()
        missed = int(max(0.0, now - self._sample_at) // self._intervals.sample)
        self._sample_at += self._intervals.sample * (missed + 1)
        return max(0.0, self._sample_at - now)

    def deliver(self) -> float:
        """Carry one batch to the sink; return the seconds to wait."""
        return self._shipper.ship_batch()

    def build_tally(self) -> CollectorTally:
        """Build the tally of this collector, and log the losses since the last call."""
        try:
            spool = self._spool.read_status()
        except SpoolDiskFull:
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
            delivering=self._shipper.trouble is None,
            spool=spool,
        )

    def _round(self) -> None:
        began = self._monotonic()
        seen = unreadable = 0
        for reading in self._disks.read_disks():
            if self._keep(reading) and self._intervals.round > self._intervals.reread:
                self._again[reading.device] = self._monotonic() + self._intervals.reread
            seen += 1
            unreadable += isinstance(reading.seen, Unreadable)
            if self._stopping():
                return
        self._seen, self._unreadable = seen, unreadable
        self._round_seconds = self._monotonic() - began

    def _reread_disks(self) -> None:
        """Read the disks that are due for a second reading. A second rise is left to the next round."""
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
        """Put a reading into the spool. Return whether error counts of its disk rose since the reading before."""
        refused = self._spool.accept((reading,), self._clock.now())
        for sentence in refused:
            structlog.get_logger().error("reading not kept", reason=sentence)
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
                reason="the spool is full or its disk is: bring the sink back, or give [collector] a larger spool",
            )
