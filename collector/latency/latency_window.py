"""One OSD over about a minute: the sum of its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from predrain.collector.latency.diskstats import DiskUse
from predrain.collector.latency.latency_histogram import Histogram, quantile_of_means
from predrain.collector.latency.perf_counters import OsdCounters
from predrain.data.ids import HostName, OsdKey
from predrain.data.latency_windows import LatencySummary


@dataclass(frozen=True, slots=True)
class OsdCounterSample:
    """One OSD at one instant."""

    at: datetime
    process: tuple[int, int]
    """The identity of the OSD's process: the inode of its socket, and the socket's change time in ns."""
    counted: OsdCounters
    disk: str | None = None
    used: DiskUse | None = None
    """The use of the data disk (by kernel name) since that disk appeared; None if unknown."""


@dataclass(frozen=True, slots=True)
class CounterGrowth:
    """The work of an OSD and of its disk between two samples."""

    begin: datetime
    end: datetime
    reads: Histogram
    writes: Histogram
    commits: tuple[float, int]
    """(mean milliseconds, number); (0, 0) if there were none or they are unknown."""
    recovered: bool | None
    used: DiskUse | None


def compute_counter_growth(before: OsdCounterSample, after: OsdCounterSample) -> CounterGrowth | None:
    """Return the growth between two samples, or None if the OSD was restarted or its counters were reset in between."""
    if before.process != after.process:
        return None
    reads = after.counted.reads.since(before.counted.reads)
    writes = after.counted.writes.since(before.counted.writes)
    if reads is None or writes is None:
        return None
    old, new = before.counted.recoveries, after.counted.recoveries
    used = after.used.since(before.used) if after.used and before.used and after.disk == before.disk else None
    return CounterGrowth(
        before.at, after.at, reads, writes, _compute_commit_mean(before.counted, after.counted),
        None if old is None or new is None else new > old, used,
    )  # fmt: skip


def _compute_commit_mean(before: OsdCounters, after: OsdCounters) -> tuple[float, int]:
    if before.commits is None or after.commits is None:
        return 0.0, 0
    count = after.commits.count - before.commits.count
    seconds = after.commits.seconds - before.commits.seconds
    return (1000 * seconds / count, count) if count > 0 and seconds > 0 else (0.0, 0)


class LatencyWindow:
    """A window that grows sample by sample until it is summed up."""

    def __init__(self) -> None:
        self._begin: datetime | None = None
        self._end: datetime | None = None
        self._reads: Histogram | None = None
        self._writes: Histogram | None = None
        self._commits: list[tuple[float, int]] = []
        self._used, self._used_seconds = DiskUse(0, 0, 0), 0.0
        self._states: list[OsdCounters] = []
        self._recovered: list[bool | None] = []

    def add(self, part: CounterGrowth, state: OsdCounters) -> None:
        """Add the growth `part` and `state`, the OSD's counters at the end of it."""
        self._begin, self._end = self._begin or part.begin, part.end
        self._reads = (self._reads and self._reads.plus(part.reads)) or part.reads
        self._writes = (self._writes and self._writes.plus(part.writes)) or part.writes
        self._commits.append(part.commits)
        self._recovered += [part.recovered, state.recovering]
        self._states.append(state)
        if part.used is not None:
            self._used = self._used.plus(part.used)
            self._used_seconds += (part.end - part.begin).total_seconds()

    def build_summary(self, osd: OsdKey, host: HostName) -> LatencySummary | None:
        """Sum up from the first sample of the window to the last; return None without two samples that belong
        together.

        p50 and p99 of reads and writes are those of operations. p50 and p99 of commits are those of the samples'
        means, weighted by commits. Slow operations are the maximum over the samples, since each operation stands for
        30 s and more. Scrubbing is known only at the samples: a scrub between two of them is not seen.
        """
        if self._begin is None or self._end is None or self._reads is None or self._writes is None:
            return None
        used, seconds = self._used, self._used_seconds
        slow = [state.slow_ops for state in self._states if state.slow_ops is not None]
        allowed = [state.backfills_max for state in self._states if state.backfills_max is not None]
        return LatencySummary(
            osd.osd,
            host,
            window_start=self._begin,
            window_seconds=(self._end - self._begin).total_seconds(),
            operations=self._reads.total + self._writes.total,
            read_ms_p50=self._reads.quantile_ms(0.5),
            read_ms_p99=self._reads.quantile_ms(0.99),
            write_ms_p50=self._writes.quantile_ms(0.5),
            write_ms_p99=self._writes.quantile_ms(0.99),
            commit_ms_p50=quantile_of_means(self._commits, 0.5),
            commit_ms_p99=quantile_of_means(self._commits, 0.99),
            device_await_ms=used.waited_ms / used.operations if used.operations and used.waited_ms else None,
            iops=used.operations / seconds if seconds else None,
            queue=used.in_flight_ms / (1000 * seconds) if seconds else None,
            slow_ops=max(slow, default=None),
            backfills_max=allowed[-1] if allowed else None,
            recovering=_is_any_true(self._recovered),
            scrubbing=_is_any_true([state.scrubbing for state in self._states]),
            cluster=osd.cluster,
        )


def _is_any_true(seen: Sequence[bool | None]) -> bool | None:
    """Return True if any is true, and None if none is known."""
    known = [one for one in seen if one is not None]
    return any(known) if known else None
