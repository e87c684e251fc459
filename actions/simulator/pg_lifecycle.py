"""The life of PGs: a map change makes them peer, then they recover or are filled, then their strays are
deleted, and the space is freed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random

from predrain.actions.crush.pool import Pool
from predrain.actions.simulator.backfill import Recovery, RecoveryLimits
from predrain.actions.simulator.client_load import Clients
from predrain.actions.simulator.cluster_spec import ClusterSpec
from predrain.actions.simulator.event_queue import Timeline
from predrain.actions.simulator.pg_deletion import PgDeletions
from predrain.actions.simulator.simulated_osdmap import OsdMap
from predrain.actions.simulator.simulated_pg import PgTruth, PlacementGroup
from predrain.data.ids import OsdId, PgId


class Lifecycle:
    """All PGs of a cluster, and the only place where their state changes."""

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
        """note: called with the index of a PG that has a report for the mgr."""
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
            clients.set_backfill_streams,
        )
        self.deletions = PgDeletions(
            timeline, self._physics.delete_pause_seconds, lambda osd: self.recovery.retry_waiting((osd,))
        )
        self.pgs = self._clean_pgs(spec)
        """Every PG by its index in the map."""
        self.truth: dict[PgId, PgTruth] = {}
        self.thin: set[PgId] = set()
        """PGs that lack a copy, by the truth."""
        for pg in self.pgs.values():
            self._update_truth(pg)
        self._used: Mapping[OsdId, int] = {}
        self.lost: set[PgId] = set()
        """PGs that have fewer shards left than their data needs."""
        self._blocked: set[int] = set()
        self._silent_until: dict[int, float] = {}
        """OSDs that answer no PG that peers, with the second at which they answer again."""

    def find_held_pgs(self, osd: int) -> frozenset[int]:
        """Return the PGs (by index) of which the OSD holds whole data."""
        return frozenset(self._held_by[osd])

    def count_used_bytes(self, osd: int) -> int:
        """Return the bytes on the OSD, with those of PGs that have left it and are not deleted yet."""
        return self.recovery.used[osd] + self.deletions.held_bytes[osd]

    def list_used_bytes(self, osds: Mapping[int, object]) -> Mapping[OsdId, int]:
        """Return `count_used_bytes` of each OSD; the same mapping as before if none of them changed."""
        used, held = self.recovery.used, self.deletions.held_bytes
        if self._used.keys() != osds.keys():
            self._used = {OsdId(osd): used[osd] + held[osd] for osd in osds}
        elif changed := {OsdId(osd) for osd in (used.changed | held.changed) if osd in osds}:
            self._used = {**self._used, **{osd: used[osd] + held[osd] for osd in changed}}
        used.changed.clear()
        held.changed.clear()
        return self._used

    def lose_disk(self, osd: int) -> None:
        """Delete all data on the OSD."""
        for index in self._held_by[osd]:
            pg = self.pgs[index]
            for held in pg.holders:
                held.discard(osd)
            pg.behind.pop(osd, None)
            if sum(bool(held) for held in pg.holders) < self._needed[pg.pool.id]:
                self.lost.add(pg.id)
        lost, self._held_by[osd] = self._held_by[osd], set()
        self.recovery.lose_disk(osd)
        self.deletions.lose_disk(osd)
        for index in sorted(lost):
            self._settled(self.pgs[index])

    def come_back(self, osd: int, away_seconds: float) -> None:
        """Bring the OSD back with its data, which lacks the writes of the time when it was away."""
        for index in self._held_by[osd]:
            pg = self.pgs[index]
            pg.behind[osd] = pg.behind.get(osd, 0.0) + away_seconds

    def silence_peer(self, osd: int, until: float) -> None:
        """Let no PG with the OSD end a peering that begins before the second `until` of the simulation's time."""
        self._silent_until[osd] = until

    def wake_peer(self, osd: int) -> None:
        """Let the OSD answer again, as after a restart of its daemon."""
        self._silent_until.pop(osd, None)

    def write_to_pool(self, pool: int, share: float) -> None:
        """Let clients write to every PG of the pool: each grows by this share of its bytes and objects."""
        for pg in self.pgs.values():
            if pg.pool.id == pool and "active" in pg.states():
                self.recovery.add_bytes(pg, int(pg.shard_bytes * share))
                pg.objects += int(pg.objects * share)
                self._note(pg.index)

    def remap(self, touched: Iterable[int], unnoticed: float = 0.0) -> None:
        """Apply a map change: PGs of `touched` whose sets changed peer again.

        unnoticed: seconds that clients had waited for a dead OSD before the map showed it.
        """
        for index in sorted(touched):
            pg = self.pgs[index]
            up = self._osdmap.compute_up_set(index)
            if up != pg.up or pg.choose_acting(self._is_up) != pg.acting:
                pg.up = up
                self._peer(pg, unnoticed)
            else:
                self._update_truth(pg)

    def split_pgs(self, pool: Pool, children: Iterable[tuple[int, int]]) -> None:
        """Split PGs of the pool.

        `children`: the indices of a parent and of its new child, in the order of their seeds. A child starts
        with half of its parent's objects, on the parent's holders. The map determines its place; its parent's
        upmap items do not apply to it. Both peer again, and a backfill continues.
        """
        self._refresh_pool(pool)
        repeering: set[int] = set()
        for parent, child in children:
            pg = self.pgs[parent]
            self.recovery.stop_backfill(pg)
            half = pg.split_off(child, self._osdmap.pgs[child])
            self.pgs[child] = half
            for osd in {osd for held in half.holders for osd in held}:
                self._held_by[osd].add(child)
            self.recovery.take_in(half)
            if pg.id in self.lost:
                self.lost.add(half.id)
            repeering |= {parent, child}
        self._clients.count_pgs(len(self.pgs))
        for index in sorted(repeering):
            self.pgs[index].up = self._osdmap.compute_up_set(index)
            self._peer(self.pgs[index])

    def merge_pgs(self, source: int, target: int) -> None:
        """Merge the last PG of a pool into its parent, which peers again. Both must be clean and on the same
        OSDs.
        """
        gone, pg = self.pgs.pop(source), self.pgs[target]
        self.recovery.stop_backfill(gone)
        gone.interval += 1
        self._count_blocked(gone, blocked=False)
        del self.truth[gone.id]
        self.lost.discard(gone.id)
        self.thin.discard(gone.id)
        for osd in {osd for held in gone.holders for osd in held}:
            self._held_by[osd].discard(source)
        pg.shard_bytes += gone.shard_bytes
        pg.objects += gone.objects
        self._clients.count_pgs(len(self.pgs))
        self._peer(pg)

    def change_pool(self, pool: Pool, repeering: Iterable[int] = ()) -> None:
        """Apply a change of the pool. `repeering`: PGs that peer again although they stay in place."""
        self._refresh_pool(pool)
        for index in sorted(repeering):
            self.pgs[index].up = self._osdmap.compute_up_set(index)
            self._peer(self.pgs[index])

    def _refresh_pool(self, pool: Pool) -> None:
        for pg in self.pgs.values():
            if pg.pool.id == pool.id:
                pg.pool = pool
                self._update_truth(pg)

    def finish_peering(self, pg: PlacementGroup, interval: int) -> None:
        """End the peering of the PG, unless its sets changed again."""
        if pg.interval != interval:
            return
        pg.peering = False
        self._clients.end_peering(pg.peers_for)
        self._catch_up(pg)
        self.recovery.request_backfill(pg)
        self._purge(pg)
        self._settled(pg)

    def caught_up(self, pg: PlacementGroup, interval: int) -> None:
        """End log recovery: members that were away are whole again."""
        if pg.interval != interval:
            return
        if "norecover" in self._osdmap.flags:
            self._time.schedule_after(self._physics.log_recovery_seconds, _CaughtUp(self, pg, interval))
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
            up = self._osdmap.compute_up_set(index)
            pg = PlacementGroup.create_clean(index, pg_id, pool.pool, size, pool.object_bytes, pool.young, up)
            pgs[index] = pg
            for osd in pg.served_by():
                self._held_by[osd].add(index)
                self.recovery.used[osd] += size
        return pgs

    def _room(self, osd: int) -> float:
        return self._full_bytes[osd] - self.count_used_bytes(osd)

    def _may_fill(self, pg: PlacementGroup) -> bool:
        flags = self._osdmap.flags
        if pg.young:
            return "norecover" not in flags
        return "nobackfill" not in flags and (pg.is_degraded() or "norebalance" not in flags)

    def _peer(self, pg: PlacementGroup, unnoticed: float = 0.0) -> None:
        acting = pg.choose_acting(self._is_up)
        told = bool(pg.held) and pg.held == acting and not pg.peering
        asks = not told and set(acting) != set(pg.up)
        span = self._physics.asking_peering_seconds if asks else self._physics.peering_seconds
        seconds = self._random.uniform(*span) + unnoticed
        waits = [
            self._silent_until[osd] - self._time.now for osd in pg.up + acting if osd in self._silent_until
        ]
        seconds = max([seconds, *waits])
        if not pg.peering:
            self._clients.begin_peering(seconds)
            pg.peers_for = seconds
        pg.peering = True
        pg.acting = acting
        self.recovery.stop_backfill(pg)
        pg.toofull = False
        pg.interval += 1
        self._time.schedule_after(seconds, _Peered(self, pg, pg.interval))
        self._settled(pg)

    def _catch_up(self, pg: PlacementGroup) -> None:
        """Recover members that were away from the log; the time grows with the writes that they missed."""
        behind = [pg.behind[osd] for osd in pg.acting if osd in pg.behind]
        if behind:
            seconds = self._physics.log_recovery_seconds + max(behind) * self._physics.missed_write_share
            self._time.schedule_after(seconds, _CaughtUp(self, pg, pg.interval))

    def _filled(self, pg: PlacementGroup) -> None:
        """Handle whole targets: `up` takes over, and strays are deleted."""
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
        """Delete the copies of a clean PG that do not serve."""
        if not pg.is_clean():
            return
        freed: list[int] = []
        for place, held in enumerate(pg.holders):
            serving = {pg.acting[place]} if pg.pool.erasure else set(pg.acting)
            for osd in sorted(held - serving):
                held.discard(osd)
                pg.behind.pop(osd, None)
                self.recovery.used[osd] -= pg.shard_bytes
                self.deletions.begin(osd, pg.shard_bytes, pg.objects)
                freed.append(osd)
        for osd in freed:
            if not any(osd in held for held in pg.holders):
                self._held_by[osd].discard(pg.index)

    def _changed(self, pg: PlacementGroup) -> None:
        self._note(pg.index)

    def _settled(self, pg: PlacementGroup) -> None:
        """Update the truth after a change of the PG and queue its report for the mgr."""
        self._update_truth(pg)
        self._count_blocked(pg, blocked=not (pg.peering or "active" in pg.states()))
        self._note(pg.index)

    def _update_truth(self, pg: PlacementGroup) -> None:
        truth = self.truth[pg.id] = pg.truth(self._is_up)
        (self.thin.add if truth.copies < truth.pool.size else self.thin.discard)(pg.id)

    def _count_blocked(self, pg: PlacementGroup, *, blocked: bool) -> None:
        if blocked != (pg.index in self._blocked):
            (self._blocked.add if blocked else self._blocked.discard)(pg.index)
            self._clients.add_blocked_pgs(1 if blocked else -1)


@dataclass(frozen=True, slots=True)
class _Peered:
    life: Lifecycle
    pg: PlacementGroup
    interval: int

    def __call__(self) -> None:
        self.life.finish_peering(self.pg, self.interval)


@dataclass(frozen=True, slots=True)
class _CaughtUp:
    life: Lifecycle
    pg: PlacementGroup
    interval: int

    def __call__(self) -> None:
        self.life.caught_up(self.pg, self.interval)
