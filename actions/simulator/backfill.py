"""Backfill: the copies that may run at once (reservations), their rate (streams share disks), and the bytes
they fill.

A PG that backfills holds one local reservation on its primary and one remote reservation on each target, as
with Ceph's reservers; `osd_max_backfills` limits each kind separately. A stream runs at the lowest rate that
one of its disks gives it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from predrain.actions.simulator.event_queue import Timeline
from predrain.actions.simulator.simulated_pg import PlacementGroup

_HEALING_WEIGHT = 2.1


@dataclass(slots=True)
class RecoveryLimits:
    """The limits in force now."""

    backfills: int
    stream_bytes_per_second: float
    disk_bytes_per_second: float


@dataclass(slots=True)
class Stream:
    """The backfill of one PG."""

    pg: PlacementGroup
    primary: int
    targets: tuple[tuple[int, int], ...]
    touches: frozenset[int]
    heals: bool
    """True if it restores lost redundancy; otherwise it only moves data."""
    weight: float = 1.0
    """The share of a disk's time that it takes beside other streams. Restoring redundancy goes before moving.
    """
    rate: float = 0.0
    since: float = 0.0
    version: int = 0


class ByteCounts(dict[int, int]):
    """Bytes by OSD, 0 for any other; `changed` collects the OSDs whose bytes were set."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: set[int] = set()

    def __missing__(self, osd: int) -> int:
        return 0

    def __setitem__(self, osd: int, size: int) -> None:
        self.changed.add(osd)
        super().__setitem__(osd, size)


class Recovery:
    """All backfills of a cluster. The cluster says which PGs need one, and is called when one is done."""

    def __init__(
        self,
        timeline: Timeline,
        limits: Callable[[], RecoveryLimits],
        slowness: Callable[[int], float],
        room: Callable[[int], float],
        allowed: Callable[[PlacementGroup], bool],
        filled: Callable[[PlacementGroup], None],
        changed: Callable[[PlacementGroup], None],
        loaded: Callable[[int, float], None],
    ) -> None:
        """room: returns the bytes left on an OSD below backfillfull. filled: called when all targets of a PG
        are whole. changed: called when a PG's states changed. loaded: called with the streams that an OSD
        serves now; streams that restore redundancy count more.
        """
        self._timeline, self._limits, self._slowness, self._room = timeline, limits, slowness, room
        self._allowed, self._filled, self._changed, self._loaded = allowed, filled, changed, loaded
        self.used = ByteCounts()
        """Bytes on each OSD; a shard counts in full from the start of its backfill."""
        self.moved_bytes = 0
        """Bytes copied while every former copy still existed."""
        self.recovered_bytes = 0
        """Bytes copied to restore lost redundancy."""
        self._streams: dict[int, Stream] = {}
        self._weight: dict[int, float] = defaultdict(float)
        self._on: dict[int, set[int]] = defaultdict(set)
        self._local: dict[int, int] = defaultdict(int)
        self._remote: dict[int, int] = defaultdict(int)
        self._filling: dict[int, dict[int, PlacementGroup]] = defaultdict(dict)
        self._waiting: dict[int, dict[int, PlacementGroup]] = defaultdict(dict)

    def count_streams(self) -> int:
        """Count the backfills that run now."""
        return len(self._streams)

    def request_backfill(self, pg: PlacementGroup) -> None:
        """Start the backfill of a PG that has peered and lacks members, or queue it until a reservation is
        free.
        """
        if pg.index not in self._streams and pg.list_missing() and not self._start(pg):
            for osd in self._touched(pg):
                self._waiting[osd][pg.index] = pg

    def stop_backfill(self, pg: PlacementGroup) -> None:
        """Stop the PG's backfill because its sets change; keep the copied parts that are still wanted, and
        free the rest.
        """
        touched = self._touched(pg)
        for osd in touched:
            self._waiting[osd].pop(pg.index, None)
        touched |= self._release(pg)
        wanted = set(pg.list_missing())
        for target in [target for target in pg.partial if target not in wanted]:
            self._unfill(pg, target)
            self.used[target[1]] -= pg.shard_bytes
        self.retry_waiting(touched)

    def take_in(self, child: PlacementGroup) -> None:
        """Register a child PG that was split off during a backfill; the data on its targets stays."""
        for _, osd in child.partial:
            self._filling[osd][child.index] = child

    def add_bytes(self, pg: PlacementGroup, added: int) -> None:
        """Make the PG larger by bytes that clients wrote: on each holder, and on each target that is being filled.

        A backfill goes on, and has these bytes to copy as well.
        """
        stream = self._streams.get(pg.index)
        if stream is not None:
            self._settle(stream)
        pg.shard_bytes += added
        for osd in [osd for held in pg.holders for osd in held] + [osd for _, osd in pg.partial]:
            self.used[osd] += added
        if stream is not None:
            stream.rate = 0.0  # so that its end is scheduled again
            self._pace((pg.index,))

    def lose_disk(self, osd: int) -> None:
        """Delete the data on a dead disk, including incomplete copies."""
        for pg in list(self._filling[osd].values()):
            self._release(pg)
            for target in [target for target in pg.partial if target[1] == osd]:
                self._unfill(pg, target)
        self.used[osd] = 0

    def retry_waiting(self, osds: Iterable[int]) -> None:
        """Let the PGs that wait for these OSDs try again, those that restore redundancy first."""
        for osd in osds:
            queue = self._waiting.get(osd)
            if not queue:
                continue
            for pg in sorted(queue.values(), key=_compute_urgency_key):
                if pg.peering or not pg.list_missing() or self._start(pg):
                    queue.pop(pg.index, None)

    def recheck_streams(self) -> None:
        """Apply changed flags or limits: stop forbidden streams, start allowed ones, and set the rate of the
        rest.
        """
        for stream in list(self._streams.values()):
            if not self._allowed(stream.pg):
                self._release(stream.pg)
                self._changed(stream.pg)
                self.request_backfill(stream.pg)
        self._pace(self._streams)
        self.retry_waiting(list(self._waiting))

    def update_disk_speed(self, osd: int) -> None:
        """Apply a changed disk speed."""
        self._pace(self._on[osd])

    def _unfill(self, pg: PlacementGroup, target: tuple[int, int]) -> None:
        del pg.partial[target]
        if not any(osd == target[1] for _, osd in pg.partial):
            self._filling[target[1]].pop(pg.index, None)

    def _touched(self, pg: PlacementGroup) -> set[int]:
        return {osd for _, osd in pg.list_missing()} | set(pg.served_by()) | {osd for _, osd in pg.partial}

    def _start(self, pg: PlacementGroup) -> bool:
        if pg.peering or not pg.served_by() or pg.index in self._streams or not self._allowed(pg):
            return False
        targets = tuple(pg.list_missing())
        primary = pg.served_by()[0]
        limit = self._limits().backfills
        short = [o for p, o in targets if (p, o) not in pg.partial and self._room(o) < pg.shard_bytes]
        if bool(short) != pg.toofull:
            pg.toofull = bool(short)
            self._changed(pg)
        if short or self._local[primary] >= limit or any(self._remote[o] >= limit for _, o in targets):
            return False
        for place, osd in targets:
            if (place, osd) not in pg.partial:
                pg.partial[(place, osd)] = 0.0
                self._filling[osd][pg.index] = pg
                self.used[osd] += pg.shard_bytes
            self._remote[osd] += 1
        self._local[primary] += 1
        readers = pg.served_by() if pg.pool.erasure else [primary]
        touches = frozenset(readers) | {osd for _, osd in targets}
        heals = pg.is_degraded()
        weight = _HEALING_WEIGHT if heals else 1.0
        stream = Stream(pg, primary, targets, touches, heals, weight, since=self._timeline.now)
        self._streams[pg.index] = stream
        pg.backfilling = True
        self._load(stream, add=True)
        self._changed(pg)
        return True

    def _release(self, pg: PlacementGroup) -> frozenset[int]:
        """End the PG's stream, if it has one. Return the OSDs whose reservations become free."""
        stream = self._streams.get(pg.index)
        if stream is None:
            return frozenset()
        self._settle(stream)
        del self._streams[pg.index]
        stream.version += 1
        pg.backfilling = False
        self._local[stream.primary] -= 1
        for _, osd in stream.targets:
            self._remote[osd] -= 1
        self._load(stream, add=False)
        return stream.touches

    def _load(self, stream: Stream, *, add: bool) -> None:
        for osd in stream.touches:
            (self._on[osd].add if add else self._on[osd].discard)(stream.pg.index)
            self._weight[osd] += stream.weight if add else -stream.weight
            self._loaded(osd, self._weight[osd])
        self._pace({index for osd in stream.touches for index in self._on[osd]})

    def _pace(self, indices: Iterable[int]) -> None:
        """Account and reschedule the streams whose share of a disk has changed."""
        limits = self._limits()
        for index in sorted(indices):
            stream = self._streams[index]
            shares = (
                limits.disk_bytes_per_second / (self._slowness(osd) * len(self._on[osd]))
                for osd in stream.touches
            )
            rate = min(limits.stream_bytes_per_second, *shares)
            if rate == stream.rate:
                continue
            self._settle(stream)
            stream.rate = rate
            stream.version += 1
            left = max(stream.pg.shard_bytes - stream.pg.partial[target] for target in stream.targets)
            self._timeline.schedule_after(left / rate, _Finish(self, stream, stream.version))

    def _settle(self, stream: Stream) -> None:
        """Record the bytes that the stream has copied since the last call."""
        copied = (self._timeline.now - stream.since) * stream.rate
        stream.since = self._timeline.now
        for target in stream.targets:
            done = stream.pg.partial[target]
            step = min(copied, stream.pg.shard_bytes - done)
            stream.pg.partial[target] = done + step
            if stream.heals:
                self.recovered_bytes += int(step)
            else:
                self.moved_bytes += int(step)

    def finish(self, stream: Stream, version: int) -> None:
        """Finish the stream, unless it was stopped or rescheduled since."""
        if stream.version != version:
            return
        pg = stream.pg
        self._release(pg)
        for place, osd in stream.targets:
            self._unfill(pg, (place, osd))
            pg.holders[place].add(osd)
        self._filled(pg)
        self.retry_waiting(stream.touches)


@dataclass(frozen=True, slots=True)
class _Finish:
    recovery: Recovery
    stream: Stream
    version: int

    def __call__(self) -> None:
        self.recovery.finish(self.stream, self.version)


def _compute_urgency_key(pg: PlacementGroup) -> tuple[int, int]:
    return (len(pg.served_by()) if pg.is_undersized() else pg.pool.size, pg.index)
