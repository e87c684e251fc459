"""The life of PGs: a map change makes them peer, then they catch up or are filled, then their strays go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from predrain.actions.crush.pool import Pool
from predrain.actions.simulator.client import Clients
from predrain.actions.simulator.events import Timeline
from predrain.actions.simulator.osdmap import OsdMap
from predrain.actions.simulator.pg import PgTruth, PlacementGroup
from predrain.actions.simulator.recovery import Recovery, RecoveryLimits
from predrain.actions.simulator.spec import ClusterSpec
from predrain.data.ids import PgId


class Lifecycle:
    """All PGs of a cluster, and the one place where their state changes."""

    def __init__(
        self,
        spec: ClusterSpec,
        osdmap: OsdMap,
        timeline: Timeline,
        random: Random,
        clients: Clients,
        limits: Callable[[], RecoveryLimits],
        note: Callable[[int], None],
    ) -> None:
        """note: a PG (by index) has news for the mgr."""
        self._osdmap, self._time, self._random, self._clients, self._note = (
            osdmap,
            timeline,
            random,
            clients,
            note,
        )
        self._physics = spec.physics
        self._full_bytes = {int(osd.id): osd.size_bytes * spec.backfillfull_ratio for osd in spec.osds}
        self._needed = {each.pool.id: each.data_shards for each in spec.pools}
        self._held_by: dict[int, set[int]] = {int(osd.id): set() for osd in spec.osds}
        self.recovery = Recovery(
            timeline,
            limits,
            clients.slowness,
            self._room,
            self._may_fill,
            self._filled,
            self._changed,
            clients.load,
        )
        self.pgs = self._clean_pgs(spec)
        """Every PG by its index in the map."""
        self.truth: dict[PgId, PgTruth] = {pg.id: pg.truth(self._is_up) for pg in self.pgs.values()}
        self.lost: set[PgId] = set()
        """PGs of which fewer shards are left than their data need."""
        self._blocked: set[int] = set()

    def holding(self, osd: int) -> frozenset[int]:
        """PGs (by index) whose whole data the OSD holds."""
        return frozenset(self._held_by[osd])

    def lose_disk(self, osd: int) -> None:
        """All that lay on the OSD is gone."""
        for index in self._held_by[osd]:
            pg = self.pgs[index]
            for held in pg.holders:
                held.discard(osd)
            pg.behind.pop(osd, None)
            if sum(bool(held) for held in pg.holders) < self._needed[pg.pool.id]:
                self.lost.add(pg.id)
        lost, self._held_by[osd] = self._held_by[osd], set()
        self.recovery.lose_disk(osd)
        for index in sorted(lost):
            self._settled(self.pgs[index])

    def come_back(self, osd: int, away_seconds: float) -> None:
        """The OSD is back with its data, which misses what was written meanwhile."""
        for index in self._held_by[osd]:
            pg = self.pgs[index]
            pg.behind[osd] = pg.behind.get(osd, 0.0) + away_seconds

    def remap(self, touched: Iterable[int], unnoticed: float = 0.0) -> None:
        """The map changed: of these PGs, those whose sets changed peer anew. unnoticed: seconds that clients had waited
        for somebody who was gone before the map said so.
        """
        for index in sorted(touched):
            pg = self.pgs[index]
            up = self._osdmap.place(index)
            if up != pg.up or pg.choose_acting(self._is_up) != pg.acting:
                pg.up = up
                self._peer(pg, unnoticed)
            else:
                self.truth[pg.id] = pg.truth(self._is_up)

    def split_pgs(self, pool: Pool, children: Iterable[tuple[int, int]]) -> None:
        """PGs of the pool are split. children: indices of a parent and of its new child, in the order of their seeds.

        A child begins with half of its parent's objects, on the parent's holders; where it belongs, the map says: its
        parent's upmaps are not its own. Both peer anew, and a backfill goes on where it was.
        """
        self._refresh_pool(pool)
        stirred: set[int] = set()
        for parent, child in children:
            pg = self.pgs[parent]
            self.recovery.drop(pg)
            half = pg.split_off(child, self._osdmap.pgs[child])
            self.pgs[child] = half
            for osd in {osd for held in half.holders for osd in held}:
                self._held_by[osd].add(child)
            self.recovery.take_in(half)
            if pg.id in self.lost:
                self.lost.add(half.id)
            stirred |= {parent, child}
        self._clients.count_pgs(len(self.pgs))
        for index in sorted(stirred):
            self.pgs[index].up = self._osdmap.place(index)
            self._peer(self.pgs[index])

    def merge_pgs(self, source: int, target: int) -> None:
        """The last PG of a pool becomes a part of its parent, which peers anew. Both are clean and on the same OSDs."""
        gone, pg = self.pgs.pop(source), self.pgs[target]
        self.recovery.drop(gone)
        gone.interval += 1
        self._count_blocked(gone, blocked=False)
        del self.truth[gone.id]
        self.lost.discard(gone.id)
        for osd in {osd for held in gone.holders for osd in held}:
            self._held_by[osd].discard(source)
        pg.shard_bytes += gone.shard_bytes
        pg.objects += gone.objects
        self._clients.count_pgs(len(self.pgs))
        self._peer(pg)

    def change_pool(self, pool: Pool, stirred: Iterable[int] = ()) -> None:
        """The pool is otherwise by now. stirred: PGs that peer anew although they stay where they are."""
        self._refresh_pool(pool)
        for index in sorted(stirred):
            self.pgs[index].up = self._osdmap.place(index)
            self._peer(self.pgs[index])

    def _refresh_pool(self, pool: Pool) -> None:
        for pg in self.pgs.values():
            if pg.pool.id == pool.id:
                pg.pool = pool
                self.truth[pg.id] = pg.truth(self._is_up)

    def peered(self, pg: PlacementGroup, interval: int) -> None:
        """The PG has peered, unless its sets changed again."""
        if pg.interval != interval:
            return
        pg.peering = False
        self._clients.end_peering(pg.peers_for)
        self._catch_up(pg)
        self.recovery.want(pg)
        self._purge(pg)
        self._settled(pg)

    def caught_up(self, pg: PlacementGroup, interval: int) -> None:
        """Log recovery is done: members that were away are whole again."""
        if pg.interval != interval:
            return
        if "norecover" in self._osdmap.flags:
            self._time.after(self._physics.log_recovery_seconds, _CaughtUp(self, pg, interval))
            return
        for osd in pg.acting:
            pg.behind.pop(osd, None)
        self._purge(pg)
        self._settled(pg)

    def _is_up(self, osd: int) -> bool:
        return osd in self._osdmap.up

    def _clean_pgs(self, spec: ClusterSpec) -> dict[int, PlacementGroup]:
        pools = {each.pool.id: each for each in spec.pools}
        pgs: dict[int, PlacementGroup] = {}
        for index, pg_id in self._osdmap.pgs.items():
            pool = pools[self._osdmap.pool(index).id]
            size = int(pool.shard_bytes * math.exp(self._random.gauss(0, pool.spread)))
            up = self._osdmap.place(index)
            pg = PlacementGroup.clean(index, pg_id, pool.pool, size, pool.object_bytes, pool.young, up)
            pgs[index] = pg
            for osd in pg.served_by():
                self._held_by[osd].add(index)
                self.recovery.used[osd] += size
        return pgs

    def _room(self, osd: int) -> float:
        return self._full_bytes[osd] - self.recovery.used[osd]

    def _may_fill(self, pg: PlacementGroup) -> bool:
        flags = self._osdmap.flags
        if pg.young:
            return "norecover" not in flags
        return "nobackfill" not in flags and (pg.degraded() or "norebalance" not in flags)

    def _peer(self, pg: PlacementGroup, unnoticed: float = 0.0) -> None:
        acting = pg.choose_acting(self._is_up)
        told = bool(pg.held) and pg.held == acting and not pg.peering
        asks = not told and set(acting) != set(pg.up)
        span = self._physics.asking_peering_seconds if asks else self._physics.peering_seconds
        seconds = self._random.uniform(*span) + unnoticed
        if not pg.peering:
            self._clients.begin_peering(seconds)
            pg.peers_for = seconds
        pg.peering = True
        pg.acting = acting
        self.recovery.drop(pg)
        pg.toofull = False
        pg.interval += 1
        self._time.after(seconds, _Peered(self, pg, pg.interval))
        self._settled(pg)

    def _catch_up(self, pg: PlacementGroup) -> None:
        """Members that were away are brought up from the log, in a time that grows with what they missed."""
        behind = [pg.behind[osd] for osd in pg.acting if osd in pg.behind]
        if behind:
            seconds = self._physics.log_recovery_seconds + max(behind) * self._physics.missed_write_share
            self._time.after(seconds, _CaughtUp(self, pg, pg.interval))

    def _filled(self, pg: PlacementGroup) -> None:
        """All targets are whole: `up` takes over and strays go."""
        for held in pg.holders:
            for osd in held:
                self._held_by[osd].add(pg.index)
        if pg.choose_acting(self._is_up) != pg.acting:
            self._osdmap.epoch += 1
            self._peer(pg)
            return
        self._purge(pg)
        self._settled(pg)

    def _purge(self, pg: PlacementGroup) -> None:
        """A clean PG deletes the copies that nobody serves."""
        if not pg.is_clean():
            return
        freed: list[int] = []
        for place, held in enumerate(pg.holders):
            serving = {pg.acting[place]} if pg.pool.erasure else set(pg.acting)
            for osd in sorted(held - serving):
                held.discard(osd)
                pg.behind.pop(osd, None)
                self.recovery.used[osd] -= pg.shard_bytes
                freed.append(osd)
        for osd in freed:
            if not any(osd in held for held in pg.holders):
                self._held_by[osd].discard(pg.index)
        self.recovery.kick(freed)

    def _changed(self, pg: PlacementGroup) -> None:
        self._note(pg.index)

    def _settled(self, pg: PlacementGroup) -> None:
        """Something about the PG is new: the truth is kept current and a report leaves for the mgr."""
        self.truth[pg.id] = pg.truth(self._is_up)
        self._count_blocked(pg, blocked=not (pg.peering or "active" in pg.states()))
        self._note(pg.index)

    def _count_blocked(self, pg: PlacementGroup, *, blocked: bool) -> None:
        if blocked != (pg.index in self._blocked):
            (self._blocked.add if blocked else self._blocked.discard)(pg.index)
            self._clients.block(1 if blocked else -1)


@dataclass(frozen=True, slots=True)
class _Peered:
    life: Lifecycle
    pg: PlacementGroup
    interval: int

    def __call__(self) -> None:
        self.life.peered(self.pg, self.interval)


@dataclass(frozen=True, slots=True)
class _CaughtUp:
    life: Lifecycle
    pg: PlacementGroup
    interval: int

    def __call__(self) -> None:
        self.life.caught_up(self.pg, self.interval)
