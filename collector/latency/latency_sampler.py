"""The latencies of a host's OSDs: sampled every few seconds and reported window by window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from predrain.collector.latency.admin_sockets import SilentOsd, SocketRequest, ask_all
from predrain.collector.latency.diskstats import disk_use
from predrain.collector.latency.latency_window import LatencyWindow, OsdCounterSample, compute_counter_growth
from predrain.collector.latency.perf_counters import (
    COMMANDS,
    SLOW,
    SLOW_LISTED,
    STATUS,
    NotCounted,
    parse_cluster,
    parse_osd_counters,
    unknown_command,
)
from predrain.data.clock import Clock
from predrain.data.ids import ClusterId, HostName, OsdKey
from predrain.data.latency_windows import LatencySummary
from predrain.data.refusal import Refusal

_EARLY = timedelta(seconds=1)
"""A sample that comes this little before the end of a window ends it, because sample times are never quite even."""


@dataclass(frozen=True, slots=True)
class LatencyWatchLimits:
    """The limits of a latency watch, and the length of a window."""

    seconds: float = 2.0
    """Seconds in which all OSDs of the host together have to answer each sample."""
    answer_bytes: int = 1 << 20
    """A longer answer is not read."""
    window: timedelta = timedelta(seconds=60)
    """Length of a window. A longer stretch without a sample is not counted into any window."""


class LatencyWatch:
    """Follows the OSDs of one host, in one thread at a time.

    An OSD that does not report a value has no data there; the other OSDs are not affected.
    """

    def __init__(
        self,
        sockets: Callable[[], Mapping[Path, OsdKey]],
        disks: Callable[[OsdKey], tuple[str, ...]],
        clock: Clock,
        host: HostName,
        *,
        diskstats: Path = Path("/proc/diskstats"),
        limits: LatencyWatchLimits = LatencyWatchLimits(),
    ) -> None:
        """Take the sources of the samples.

        `sockets`: gives the admin sockets with their OSDs, for each sample. If it raises a Refusal, that is trouble,
        and no OSD is asked.
        `disks`: gives the kernel names of the disks on which an OSD keeps data. The first one that the kernel counts
        is followed.
        """
        self._sockets, self._disks, self._clock, self._host = sockets, disks, clock, host
        self._diskstats, self._limits = diskstats, limits
        self._before: dict[OsdKey, OsdCounterSample] = {}
        self._windows: dict[OsdKey, LatencyWindow] = {}
        self._began: datetime | None = None
        self._last: datetime | None = None
        self._finished: list[LatencySummary] = []
        self._slow: dict[Path, bytes] = {}
        self._clusters: dict[Path, tuple[tuple[int, int], ClusterId | None]] = {}
        """The process behind each socket that was asked for its cluster, and that cluster; None if it named none."""
        self._trouble: dict[str, str] = {}

    @property
    def trouble(self) -> Mapping[str, str]:
        """For each socket (its path), or `sockets` for all: the reason why the last sample holds nothing of its OSD,
        and the cure.
        """
        return self._trouble

    def sample(self) -> None:
        """Ask every OSD once, for `limits.seconds` at most. No failure of an OSD raises: see `trouble`."""
        now, longest = self._clock.now(), self._limits.window
        if self._last is not None and now <= self._last:
            self._finish()  # the clock was set back: new samples do not continue the earlier ones
            self._before.clear()
            self._began = None
        self._last, self._began, self._trouble = now, self._began or now, {}
        for osd, sample in self._look(now):
            before = self._before.get(osd)
            self._before[osd] = sample
            part = compute_counter_growth(before, sample) if before and now - before.at <= longest else None
            if part is not None:
                self._windows.setdefault(osd, LatencyWindow()).add(part, sample.counted)
        if now - self._began >= longest - _EARLY:
            self._finish()
            self._began = now

    def take_summaries(self) -> tuple[LatencySummary, ...]:
        """Return the windows that have ended since the last call. An OSD without two samples in its window has none."""
        finished, self._finished = tuple(self._finished), []
        return finished

    def _finish(self) -> None:
        ordered = sorted(self._windows.items(), key=lambda one: (one[0].osd, one[0].cluster or ""))
        done = (window.build_summary(osd, self._host) for osd, window in ordered)
        self._finished += [summary for summary in done if summary is not None]
        self._windows.clear()

    def _look(self, now: datetime) -> Iterator[tuple[OsdKey, OsdCounterSample]]:
        try:
            sockets = self._sockets()
        except Refusal as refusal:
            self._trouble["sockets"] = str(refusal)
            return
        processes = {socket: _identify_osd_process(socket) for socket in sockets}
        self._clusters = {path: one for path, one in self._clusters.items() if processes.get(path) == one[0]}
        questions = {
            socket: SocketRequest(
                socket,
                (*COMMANDS, self._slow.get(socket, SLOW), *(() if socket in self._clusters else (STATUS,))),
            )
            for socket in sockets
        }
        used = disk_use(self._diskstats)
        answers = ask_all(questions, seconds=self._limits.seconds, answer_bytes=self._limits.answer_bytes)
        heard: dict[OsdKey, Path] = {}
        silent: dict[Path, SilentOsd] = {}
        for socket, answer in answers.items():
            if isinstance(answer, SilentOsd):
                silent[socket] = answer
                continue
            *told, slow = answer[: len(COMMANDS) + 1]
            if socket not in self._clusters:
                self._clusters[socket] = processes[socket], parse_cluster(answer[-1])
            if unknown_command(slow):
                self._slow[socket] = SLOW_LISTED
            osd = self._name_osd(socket, sockets[socket])
            if heard.setdefault(osd, socket) != socket:
                continue  # the newest socket of an OSD that does not name its cluster comes first
            try:
                seen = parse_osd_counters(told, slow)
            except NotCounted as error:
                self._trouble[str(socket)] = f"osd.{osd.osd} behind {socket} {error}"
                continue
            disk = next((name for name in self._disks(osd) if name in used), None)
            yield osd, OsdCounterSample(now, processes[socket], seen, disk, used.get(disk) if disk else None)
        for socket, answer in silent.items():
            osd = self._name_osd(socket, sockets[socket])
            if not any(osd.could_be(one) for one in heard):  # else the OSD was adopted and left this socket
                self._trouble[str(socket)] = f"the admin socket of osd.{osd.osd}, {socket}, {answer.why}"

    def _name_osd(self, socket: Path, found: OsdKey) -> OsdKey:
        """Return the OSD behind a socket. The cluster is the one that its process named, or that of the path."""
        _, named = self._clusters.get(socket, (None, None))
        return OsdKey(named or found.cluster, found.osd)


def _identify_osd_process(socket: Path) -> tuple[int, int]:
    """Identify an OSD's process by its socket, which the OSD makes again at each start: (inode, change time in ns)."""
    try:
        found = socket.stat()
    except OSError:
        return 0, 0  # it will not answer either
    return found.st_ino, found.st_ctime_ns
