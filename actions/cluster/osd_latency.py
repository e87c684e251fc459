"""The latency of OSDs now as a ratio to their own last hour at rest: the signal that pacing follows.

The last hour at rest is kept in memory. A value that was measured while an OSD moved data does not become part of the
usual latency, so a long drain cannot raise the reference by its own load. All values are medians: one spike neither
raises nor hides a ratio.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from statistics import median

from predrain.data.ids import OsdId

RECENT_SECONDS = 60.0
RECENT_WINDOWS = 4
"""A value counted over a long window is recent for this many windows: the newest three, and one in which it arrives."""
RECENT_SAMPLES = 3
USUAL_SAMPLES = 12
_SLOT_SECONDS = 300.0
_SLOTS = 12
_STALE_SECONDS = 86_400.0


class LatencySource(Enum):
    """The source of a measurement, as (rank, grain in milliseconds). A source of lower rank takes precedence."""

    READ = (0, 0.0, "read")
    """The p99 of the reads that the OSD's host counted."""
    WRITE = (0, 0.0, "write")
    PROBE = (1, 0.0, "probe")
    """One small write and read by predrain."""
    PERF = (2, 1.0, "perf")
    """The values of `osd perf`, in whole milliseconds."""

    @property
    def rank(self) -> int:
        return self.value[0]

    @property
    def uses_our_clock(self) -> bool:
        """Return whether predrain's clock dates the samples, not that of the OSD's host."""
        return self in (LatencySource.PROBE, LatencySource.PERF)

    @property
    def least_ms(self) -> float:
        """Return the lowest usable latency in ms. Below it the grain is coarser than the step from 1.1x to 1.2x."""
        return 5 * self.value[1]


@dataclass(frozen=True, slots=True)
class LatencySample:
    """One measurement. The latency is in milliseconds and above 0; 0 means no data and makes no sample."""

    osd: OsdId
    at: datetime
    source: LatencySource
    ms: float
    seconds: float = 0.0
    """The length of the window that the sample describes; 0 for a single operation."""
    moving: bool = False
    """True if the OSD is known to have moved data in that time."""


@dataclass(slots=True)
class _Track:
    """The samples of one OSD from one source: the recent ones, and medians over five minutes each of an
    hour at rest.
    """

    recent: deque[tuple[float, float]] = field(default_factory=deque)
    slots: deque[tuple[float, float, int]] = field(default_factory=lambda: deque(maxlen=_SLOTS))
    open: list[float] = field(default_factory=list)
    usual: float | None = None
    """The median of the slots; None while there are too few samples."""
    since: float = 0.0
    last: float = float("-inf")
    recent_seconds: float = RECENT_SECONDS

    def add(self, at: float, now: float, ms: float, seconds: float, *, rests: bool) -> None:
        if at <= self.last:
            return
        self.last, at = at, min(at, now)  # a host's clock may run ahead of ours
        self.recent_seconds = max(RECENT_SECONDS, RECENT_WINDOWS * seconds)
        self.recent.append((at, ms))
        if not rests:
            return
        if self.open and at - self.since >= _SLOT_SECONDS:
            self._close()
        if not self.open:
            self.since = at
        self.open.append(ms)

    def set_back(self, seconds: float, *, ours: bool) -> None:
        """Shift all times, because predrain's clock was set back, so that ages stay the same.

        `ours`: samples are dated by this clock, so the next sample counts as new.
        """
        self.recent = deque((at - seconds, ms) for at, ms in self.recent)
        self.slots = deque(((at - seconds, ms, many) for at, ms, many in self.slots), maxlen=_SLOTS)
        self.since -= seconds
        if ours:
            self.last -= seconds

    def ratio(self, now: float, least_ms: float) -> float | None:
        while self.recent and self.recent[0][0] <= now - self.recent_seconds:
            self.recent.popleft()
        if self.open and now - self.since >= _SLOT_SECONDS:
            self._close()
        if self.slots and self.slots[0][0] <= now - _STALE_SECONDS:
            while self.slots and self.slots[0][0] <= now - _STALE_SECONDS:
                self.slots.popleft()
            self._weigh()
        if self.usual is None or len(self.recent) < RECENT_SAMPLES or self.usual < least_ms:
            return None
        many = len(self.recent) if self.recent_seconds == RECENT_SECONDS else RECENT_SAMPLES
        return median(ms for _, ms in list(self.recent)[-many:]) / self.usual

    def _close(self) -> None:
        self.slots.append((self.since, median(self.open), len(self.open)))
        self.open = []
        self._weigh()

    def _weigh(self) -> None:
        enough = sum(count for _, _, count in self.slots) >= USUAL_SAMPLES
        self.usual = median(ms for _, ms, _ in self.slots) if enough else None


class LatencyHistory:
    """An hour of latencies of many OSDs. Not safe for several threads at once."""

    def __init__(self) -> None:
        self._tracks: dict[tuple[OsdId, LatencySource], _Track] = {}
        self._looked = float("-inf")

    def update_ratios(
        self, now: datetime, samples: Iterable[LatencySample], busy: Collection[OsdId] = frozenset()
    ) -> dict[OsdId, float]:
        """Add samples and return each OSD's present ratio. An OSD that is missing has no signal.

        busy: OSDs that move data now. Older samples may be among the new ones, oldest first; a sample that is not
        later than the last of its OSD and source is ignored.
        """
        second = now.timestamp()
        if (back := self._looked - second) > 0:
            for (_, source), track in self._tracks.items():
                track.set_back(back, ours=source.uses_our_clock)
        self._looked = second
        for sample in samples:
            if sample.ms > 0:
                key = (sample.osd, sample.source)
                track = self._tracks.get(key) or self._tracks.setdefault(key, _Track())
                rests = not sample.moving and sample.osd not in busy
                track.add(sample.at.timestamp(), second, sample.ms, sample.seconds, rests=rests)
        ratios: dict[OsdId, tuple[int, float]] = {}
        for (osd, source), track in self._tracks.items():
            ratio = track.ratio(second, source.least_ms)
            if ratio is None:
                continue
            rank, other = ratios.get(osd, (source.rank, ratio))
            if source.rank < rank:
                ratios[osd] = (source.rank, ratio)
            elif source.rank == rank:
                ratios[osd] = (rank, max(ratio, other))
        return {osd: ratio for osd, (_, ratio) in ratios.items()}

    def slowest_ms(self, now: datetime) -> Mapping[OsdId, float]:
        """Return the longest probe of each OSD within the last minute, in ms."""
        since = now.timestamp() - RECENT_SECONDS
        found: dict[OsdId, float] = {}
        for (osd, source), track in self._tracks.items():
            longest = max((ms for at, ms in track.recent if at > since), default=None)
            if source is LatencySource.PROBE and longest is not None:
                found[osd] = longest
        return found

    def drop_absent_osds(self, known: Collection[OsdId]) -> None:
        """Drop the OSDs that are no longer in the map."""
        for key in [key for key in self._tracks if key[0] not in known]:
            del self._tracks[key]
