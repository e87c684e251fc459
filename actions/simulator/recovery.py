"""Backfill: who may copy what at once (reservations), how fast (disks shared by streams), and what it fills.

A PG that backfills holds one local reservation on its primary and one remote on each target, as Ceph's
reservers do; `osd_max_backfills` limits each kind apart. A stream runs at the slowest share of the disks
that it touches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from predrain.actions.simulator.events import Timeline
from predrain.actions.simulator.pg import PlacementGroup

_HEALING_WEIGHT = 2.1


@dataclass(slots=True)
class RecoveryLimits:
    """What is in force now."""

    backfills: int
    stream_bytes_per_second: float
    disk_bytes_per_second: float


@dataclass(slots=True)
class Stream:
    """One PG being filled."""

    pg: PlacementGroup
    primary: int
    targets: tuple[tuple[int, int], ...]
    touches: frozenset[int]
    heals: bool
    """It restores lost redundancy; otherwise it only moves."""
    weight: float = 1.0
    """How much of a disk's attention it takes beside others; healing goes before moving in an OSD's queue."""
    rate: float = 0.0
    since: float = 0.0
    version: int = 0


class Recovery:
    """All backfills of a cluster. The cluster says which PGs want one and is told when one is done."""

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
        """room: bytes left on an OSD below backfillfull. filled: all targets of a PG are whole. changed: its
        words changed. loaded: an OSD serves so many streams now, those that heal counting more."""
        self._timeline, self._limits, self._slowness, self._room = timeline, limits, slowness, room
        self._allowed, self._filled, self._changed, self._loaded = allowed, filled, changed, loaded
        self.used: dict[int, int] = defaultdict(int)
        """Bytes on each OSD; a shard counts whole from the moment that its backfill begins."""
        self.moved_bytes = 0
        """Copied while every former copy was still there."""
        self.recovered_bytes = 0
        """Copied to restore lost redundancy."""
        self._streams: dict[int, Stream] = {}
        self._weight: dict[int, float] = defaultdict(float)
        self._on: dict[int, set[int]] = defaultdict(set)
        self._local: dict[int, int] = defaultdict(int)
        self._remote: dict[int, int] = defaultdict(int)
        self._filling: dict[int, dict[int, PlacementGroup]] = defaultdict(dict)
        self._waiting: dict[int, dict[int, PlacementGroup]] = defaultdict(dict)

    def streams(self) -> int:
        """Backfills running now."""
        return len(self._streams)

    def want(self, pg: PlacementGroup) -> None:
        """The PG has peered and lacks members: start, or wait for a place."""
        if pg.index not in self._streams and pg.missing() and not self._start(pg):
            for osd in self._touched(pg):
                self._waiting[osd][pg.index] = pg

    def drop(self, pg: PlacementGroup) -> None:
        """The PG's sets change: stop its backfill, keep what is still wanted of it, free the rest."""
        touched = self._touched(pg)
        for osd in touched:
            self._waiting[osd].pop(pg.index, None)
        touched |= self._release(pg)
        wanted = set(pg.missing())
        for target in [target for target in pg.partial if target not in wanted]:
            self._unfill(pg, target)
            self.used[target[1]] -= pg.shard_bytes
        self.kick(touched)

    def take_in(self, child: PlacementGroup) -> None:
        """A PG was split while it was being filled: what the child's targets have already, they keep."""
        for _, osd in child.partial:
            self._filling[osd][child.index] = child

    def lose_disk(self, osd: int) -> None:
        """The disk died: what is on it and what was being copied there is gone."""
        for pg in list(self._filling[osd].values()):
            self._release(pg)
            for target in [target for target in pg.partial if target[1] == osd]:
                self._unfill(pg, target)
        self.used[osd] = 0

    def kick(self, osds: Iterable[int]) -> None:
        """Something came free on these OSDs: those that wait may try, healing before moving."""
        for osd in osds:
            queue = self._waiting.get(osd)
            if not queue:
                continue
            for pg in sorted(queue.values(), key=_urgency):
                if pg.peering or not pg.missing() or self._start(pg):
                    queue.pop(pg.index, None)

    def review(self) -> None:
        """Flags or limits changed: stop what is forbidden, start what may go, run the rest at its rate."""
        for stream in list(self._streams.values()):
            if not self._allowed(stream.pg):
                self._release(stream.pg)
                self._changed(stream.pg)
                self.want(stream.pg)
        self._pace(self._streams)
        self.kick(list(self._waiting))

    def slowed(self, osd: int) -> None:
        """A disk's speed changed."""
        self._pace(self._on[osd])

    def _unfill(self, pg: PlacementGroup, target: tuple[int, int]) -> None:
        del pg.partial[target]
        if not any(osd == target[1] for _, osd in pg.partial):
            self._filling[target[1]].pop(pg.index, None)

    def _touched(self, pg: PlacementGroup) -> set[int]:
        return {osd for _, osd in pg.missing()} | set(pg.served_by()) | {osd for _, osd in pg.partial}

    def _start(self, pg: PlacementGroup) -> bool:
        if pg.peering or not pg.served_by() or pg.index in self._streams or not self._allowed(pg):
            return False
        targets = tuple(pg.missing())
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
        heals = pg.degraded()
        weight = _HEALING_WEIGHT if heals else 1.0
        stream = Stream(pg, primary, targets, touches, heals, weight, since=self._timeline.now)
        self._streams[pg.index] = stream
        pg.backfilling = True
        self._load(stream, add=True)
        self._changed(pg)
        return True

    def _release(self, pg: PlacementGroup) -> frozenset[int]:
        """End the PG's stream, if it has one; returns the OSDs whose reservations it gives back."""
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
        """Settle and re-time streams whose disks are shared differently now."""
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
            self._timeline.after(left / rate, _Finish(self, stream, stream.version))

    def _settle(self, stream: Stream) -> None:
        """Book what the stream has copied since it was last looked at."""
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
        """The stream's time has come, unless it was stopped or re-timed since."""
        if stream.version != version:
            return
        pg = stream.pg
        self._release(pg)
        for place, osd in stream.targets:
            self._unfill(pg, (place, osd))
            pg.holders[place].add(osd)
        self._filled(pg)
        self.kick(stream.touches)


@dataclass(frozen=True, slots=True)
class _Finish:
    recovery: Recovery
    stream: Stream
    version: int

    def __call__(self) -> None:
        self.recovery.finish(self.stream, self.version)


def _urgency(pg: PlacementGroup) -> tuple[int, int]:
    return (len(pg.served_by()) if pg.undersized() else pg.pool.size, pg.index)
