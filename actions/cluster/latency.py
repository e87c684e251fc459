"""How long OSDs take now, as a ratio to their own hour before: the signal that pacing listens to.

Kept in memory for an hour of rest: what was measured while an OSD moved data does not become usual, so a long drain
cannot get used to what it costs. Medians throughout: one spike neither raises nor hides a ratio.
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
"""What was counted over a long window is recent for so many windows: the newest three, and time to arrive."""
RECENT_SAMPLES = 3
USUAL_SAMPLES = 12
_SLOT_SECONDS = 300.0
_SLOTS = 12
_STALE_SECONDS = 86_400.0


class LatencySource(Enum):
    """Who measured, as (rank, grain in milliseconds): a lower rank is believed before a higher one."""

    READ = (0, 0.0, "read")
    """p99 of the reads that the OSD's host counted."""
    WRITE = (0, 0.0, "write")
    PROBE = (1, 0.0, "probe")
    """One small write and read of our own."""
    PERF = (2, 1.0, "perf")
    """`osd perf`: whole milliseconds."""

    @property
    def rank(self) -> int:
        return self.value[0]

    @property
    def ours(self) -> bool:
        """Whether samples are dated by our clock, not by the OSD's host."""
        return self in (LatencySource.PROBE, LatencySource.PERF)

    @property
    def least_ms(self) -> float:
        """Below this the grain is coarser than the step from 1.1x to 1.2x, and there is no signal."""
        return 5 * self.value[1]


@dataclass(frozen=True, slots=True)
class LatencySample:
    """One measurement. Latency in milliseconds, above 0; 0 is no data and makes no sample."""

    osd: OsdId
    at: datetime
    source: LatencySource
    ms: float
    seconds: float = 0.0
    """The window that it stands for; 0 for a single operation."""
    moving: bool = False
    """Whether the OSD is known to have moved data meanwhile."""


@dataclass(slots=True)
class _Track:
    """One OSD by one source: what is recent, and medians of five minutes each over an hour of rest."""

    recent: deque[tuple[float, float]] = field(default_factory=deque)
    slots: deque[tuple[float, float, int]] = field(default_factory=lambda: deque(maxlen=_SLOTS))
    open: list[float] = field(default_factory=list)
    usual: float | None = None
    """Median of the slots; None while there are too few samples."""
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
        """Our clock was set back: keep how old all is. `ours`: measured by our clock, so what comes next is new."""
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
    """An hour of latencies of many OSDs. Not for several threads at once."""

    def __init__(self) -> None:
        self._tracks: dict[tuple[OsdId, LatencySource], _Track] = {}
        self._looked = float("-inf")

    def seen(
        self, now: datetime, samples: Iterable[LatencySample], busy: Collection[OsdId] = frozenset()
    ) -> dict[OsdId, float]:
        """Take new samples, and say each OSD's ratio now; one that is missing has no signal.

        busy: OSDs that move data now. Samples of the past may come too, oldest first; what is not later than the
        last of its kind is passed over.
        """
        second = now.timestamp()
        if (back := self._looked - second) > 0:
            for (_, source), track in self._tracks.items():
                track.set_back(back, ours=source.ours)
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
        """The longest probe of each OSD within the last minute."""
        since = now.timestamp() - RECENT_SECONDS
        found: dict[OsdId, float] = {}
        for (osd, source), track in self._tracks.items():
            longest = max((ms for at, ms in track.recent if at > since), default=None)
            if source is LatencySource.PROBE and longest is not None:
                found[osd] = longest
        return found

    def forget(self, known: Collection[OsdId]) -> None:
        """Drop OSDs that are not in the map any more."""
        for key in [key for key in self._tracks if key[0] not in known]:
            del self._tracks[key]
