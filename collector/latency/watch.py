"""The latencies of a host's OSDs: sampled every few seconds, told a window at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from predrain.collector.latency.asking import SilentOsd, SocketRequest, ask_all
from predrain.collector.latency.counters import (
    COMMANDS,
    SLOW,
    SLOW_LISTED,
    NotCounted,
    counted,
    unknown_command,
)
from predrain.collector.latency.diskstats import disk_use
from predrain.collector.latency.window import OsdCounterSample, Window, growth
from predrain.data.clock import Clock
from predrain.data.ids import HostName, OsdId
from predrain.data.reading import LatencySummary
from predrain.data.refusal import Refusal

_EARLY = timedelta(seconds=1)
"""A sample that comes so little before the end of a window ends it: ticks are never quite even."""


@dataclass(frozen=True, slots=True)
class LatencyWatchLimits:
    """What a watch may cost, and how long a window is."""

    seconds: float = 2.0
    """All OSDs of the host together have this long to answer, each sample."""
    answer_bytes: int = 1 << 20
    """A longer answer is not read."""
    window: timedelta = timedelta(seconds=60)
    """Stretches without a sample that are longer are not counted into any window."""


class LatencyWatch:
    """Follows the OSDs of one host. One thread at a time.

    What one OSD does not tell leaves that OSD without data, and the others untouched.
    """

    def __init__(
        self,
        sockets: Callable[[], Mapping[OsdId, Path]],
        disks: Callable[[OsdId], tuple[str, ...]],
        clock: Clock,
        host: HostName,
        *,
        diskstats: Path = Path("/proc/diskstats"),
        limits: LatencyWatchLimits = LatencyWatchLimits(),
    ) -> None:
        """sockets: admin sockets by OSD, looked up each sample; a Refusal of it is trouble, and no OSD is asked.
        disks: kernel names of the disks that an OSD keeps data on; the first that the kernel counts is followed.
        """
        self._sockets, self._disks, self._clock, self._host = sockets, disks, clock, host
        self._diskstats, self._limits = diskstats, limits
        self._before: dict[OsdId, OsdCounterSample] = {}
        self._windows: dict[OsdId, Window] = {}
        self._began: datetime | None = None
        self._last: datetime | None = None
        self._finished: list[LatencySummary] = []
        self._slow: dict[OsdId, bytes] = {}
        self._trouble: dict[str, str] = {}

    @property
    def trouble(self) -> Mapping[str, str]:
        """By OSD (`osd.3`), or `sockets` for all: why the last sample has nothing of it, a sentence with the cure."""
        return self._trouble

    def sample(self) -> None:
        """Ask every OSD once, for `limits.seconds` at most. Raises nothing of an OSD's making: see `trouble`."""
        now, longest = self._clock.now(), self._limits.window
        if self._last is not None and now <= self._last:
            self._finish()  # the clock was set back: what comes now does not go on from before
            self._before.clear()
            self._began = None
        self._last, self._began, self._trouble = now, self._began or now, {}
        for osd, sample in self._look(now):
            before = self._before.get(osd)
            self._before[osd] = sample
            part = growth(before, sample) if before and now - before.at <= longest else None
            if part is not None:
                self._windows.setdefault(osd, Window()).add(part, sample.counted)
        if now - self._began >= longest - _EARLY:
            self._finish()
            self._began = now

    def summaries(self) -> tuple[LatencySummary, ...]:
        """Windows that have ended since the last call. An OSD without two samples in its window has none."""
        finished, self._finished = tuple(self._finished), []
        return finished

    def _finish(self) -> None:
        done = (window.summary(osd, self._host) for osd, window in sorted(self._windows.items()))
        self._finished += [summary for summary in done if summary is not None]
        self._windows.clear()

    def _look(self, now: datetime) -> Iterator[tuple[OsdId, OsdCounterSample]]:
        try:
            sockets = self._sockets()
        except Refusal as refusal:
            self._trouble["sockets"] = str(refusal)
            return
        processes = {osd: _process(socket) for osd, socket in sockets.items()}
        questions = {
            osd: SocketRequest(socket, (*COMMANDS, self._slow.get(osd, SLOW)))
            for osd, socket in sockets.items()
        }
        used = disk_use(self._diskstats)
        answers = ask_all(questions, seconds=self._limits.seconds, answer_bytes=self._limits.answer_bytes)
        for osd, answer in answers.items():
            if isinstance(answer, SilentOsd):
                self._trouble[f"osd.{osd}"] = f"the admin socket of osd.{osd}, {sockets[osd]}, {answer.why}"
                continue
            *told, slow = answer
            if unknown_command(slow):
                self._slow[osd] = SLOW_LISTED
            try:
                seen = counted(told, slow)
            except NotCounted as error:
                self._trouble[f"osd.{osd}"] = f"osd.{osd} {error}"
                continue
            disk = next((name for name in self._disks(osd) if name in used), None)
            yield osd, OsdCounterSample(now, processes[osd], seen, disk, used.get(disk) if disk else None)


def _process(socket: Path) -> tuple[int, int]:
    """An OSD makes its socket anew whenever it starts."""
    try:
        found = socket.stat()
    except OSError:
        return 0, 0  # it will not answer either
    return found.st_ino, found.st_ctime_ns
