"""Pools that change: `pg_num` by splits and merges, `pgp_num` after it, and the CRUSH rule.

A person sets targets. The mgr reaches them in steps that it judges by its own statistics, which are late.
`pg_num` rises at once if every PG serves, and falls by one PG at a time. `pgp_num` follows as long as few
enough objects are misplaced and nothing is degraded. Source: OSDMonitor::prepare_command_pool_set,
DaemonServer::adjust_pgs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from predrain.actions.cluster.cluster_view import Pg
from predrain.actions.crush.pool import Pool
from predrain.actions.simulator.event_queue import Timeline
from predrain.actions.simulator.pg_lifecycle import Lifecycle
from predrain.actions.simulator.simulated_mgr import ReportingMgr
from predrain.actions.simulator.simulated_osdmap import OsdMap, find_parent
from predrain.data.ids import PgId, pg_id

_TICK_SECONDS = 2.0
"""`mgr_tick_period`."""
_READY_SECONDS = 1.0
"""Seconds between two checks whether two PGs are ready to be merged."""
_MISPLACED_MAX = 0.05
"""`target_max_misplaced_ratio`."""
_MERGES_AHEAD = 8
"""The distance from `pg_num` to a smaller `pgp_num` that is always allowed while PGs are merged, in PGs."""
_CLEAN = frozenset({"active", "clean"})
_SERVING = frozenset({"active", "peered"})


class PoolChanges:
    """A pool's settings by a person, and the mgr's steps towards them."""

    def __init__(
        self,
        osdmap: OsdMap,
        life: Lifecycle,
        mgr: ReportingMgr,
        timeline: Timeline,
        remap: Callable[[Iterable[int]], None],
    ) -> None:
        """remap: called with PGs that may have new places."""
        self._osdmap, self._life, self._mgr, self._timeline = osdmap, life, mgr, timeline
        self._remap = remap
        self._awake = False

    # ---- what people set

    def set_pg_num(self, pool_id: int, pg_num: int) -> None:
        """Run `osd pool set POOL pg_num N`; `pgp_num` follows unless it has its own target. Raises ValueError
        below 1.
        """
        pool = self._osdmap.pools[pool_id]
        if pg_num < 1:
            raise ValueError("pg_num must be at least 1")
        now = _fill_in(pool)
        follows = now.pgp_num_target == now.pg_num_target
        self._change(
            replace(now, pg_num_target=pg_num, pgp_num_target=pg_num if follows else now.pgp_num_target)
        )
        self._wake()

    def set_rule(self, pool_id: int, rule: int) -> None:
        """Run `osd pool set POOL crush_rule RULE`: the rule places every PG at once. Raises ValueError if it
        does not exist.
        """
        if rule not in self._osdmap.crush.rules:
            raise ValueError(f"crush rule {rule} does not exist")
        self._change(replace(self._osdmap.pools[pool_id], rule=rule))

    # ---- what the mgr does

    def adjust_pools(self) -> None:
        """Run one tick of the mgr."""
        self._awake = False
        if not self._mgr.is_blocked and not self._mgr.is_empty:
            for pool_id in list(self._osdmap.pools):
                self._adjust_pg_num(self._osdmap.pools[pool_id])
                self._adjust_pgp_num(self._osdmap.pools[pool_id])
        if any(pool.changes for pool in self._osdmap.pools.values()):
            self._wake()

    def merge_last_pg(self, pool_id: int) -> None:
        """Merge the pool's last PG into its parent once both are ready. An undersized PG ends the attempt."""
        pool = self._osdmap.pools[pool_id]
        if pool.pg_num_pending is None or pool.pg_num_pending >= pool.pg_num:
            return
        last, first = (self._osdmap.index[pg] for pg in _list_merging(pool))
        source, target = self._life.pgs[last], self._life.pgs[first]
        if any(not pg.peering and pg.is_undersized() for pg in (source, target)):
            self._change(replace(pool, pg_num_pending=pool.pg_num), (last, first))
            return
        ready = source.is_clean() and target.is_clean()
        if not ready or source.acting != target.acting or source.holders != target.holders:
            self._timeline.schedule_after(_READY_SECONDS, _Merge(self, pool_id))
            return
        touched = self._osdmap.change_pool(replace(pool, pg_num=pool.pg_num_pending))
        self._life.change_pool(self._osdmap.pools[pool_id])
        self._life.merge_pgs(last, first)
        self._mgr.learn_pgs(pool_id)
        self._remap(touched)

    def _adjust_pg_num(self, pool: Pool) -> None:
        if pool.pg_num_target > pool.pg_num:
            told = (pg for pg in self._mgr.pgs.values() if pg.pool == pool.id)
            if all(pg.states & _SERVING for pg in told):
                self._split(pool)
        elif pool.pg_num_target < pool.pg_num and pool.pg_num_pending in (None, pool.pg_num):
            self._begin_merge(pool)

    def _split(self, pool: Pool) -> None:
        grown = replace(pool, pg_num=pool.pg_num_target, pg_num_pending=pool.pg_num_target)
        touched = self._osdmap.change_pool(grown)
        index = self._osdmap.index
        children = [
            (index[pg_id(pool.id, find_parent(seed))], index[pg_id(pool.id, seed)])
            for seed in range(pool.pg_num, grown.pg_num)
        ]
        self._life.split_pgs(grown, children)
        self._mgr.learn_pgs(pool.id)
        self._remap(touched)

    def _begin_merge(self, pool: Pool) -> None:
        """Announce a merge of two PGs to the OSDs once they are on the same OSDs without upmap items."""
        if pool.pg_num == pool.pgp_num:
            return
        merging = _list_merging(replace(pool, pg_num_pending=pool.pg_num - 1))
        mapped = [pg for pg in merging if pg in self._osdmap.upmaps]
        for pg in mapped:
            self._remap(self._osdmap.set_upmap_items(pg, None))
        told = [self._mgr.pgs[pg] for pg in merging]
        if mapped or not all(pg.states >= _CLEAN for pg in told) or told[0].acting != told[1].acting:
            return
        repeering = tuple(self._osdmap.index[pg] for pg in merging)
        self._change(replace(pool, pg_num_pending=pool.pg_num - 1), repeering)
        self._timeline.schedule_after(_READY_SECONDS, _Merge(self, pool.id))

    def _adjust_pgp_num(self, pool: Pool) -> None:
        if pool.pgp_num is None or pool.pgp_num_target is None:
            return
        pending = pool.pg_num if pool.pg_num_pending is None else pool.pg_num_pending
        goal = min(pending, pool.pgp_num_target)
        if goal == pool.pgp_num:
            return
        told = list(self._mgr.pgs.values())
        misplaced = _find_misplaced_ratio(told, self._osdmap.pools)
        if misplaced > _MISPLACED_MAX or any(pg.degraded_objects or "active" not in pg.states for pg in told):
            return
        step = max(1, int(pool.pg_num * min(_MISPLACED_MAX - misplaced, _MISPLACED_MAX / 2)))
        following = max(pool.pgp_num - step, min(goal, pool.pgp_num + step))
        if pool.pgp_num_target == pool.pg_num_target < pool.pg_num:
            ahead = max(_MERGES_AHEAD, int(pool.pg_num * _MISPLACED_MAX))
            following = max(following, pool.pg_num - ahead)
        self._change(replace(pool, pgp_num=following))

    def _change(self, pool: Pool, repeering: Iterable[int] = ()) -> None:
        touched = self._osdmap.change_pool(pool)
        self._life.change_pool(pool, repeering)
        self._remap(touched)

    def _wake(self) -> None:
        if not self._awake:
            self._awake = True
            self._timeline.schedule_after(_TICK_SECONDS, self.adjust_pools)


def _fill_in(pool: Pool) -> Pool:
    """Return the pool with every number set; None means the value of `pg_num`."""
    return replace(
        pool,
        pgp_num=pool.pg_num if pool.pgp_num is None else pool.pgp_num,
        pgp_num_target=pool.pg_num_target if pool.pgp_num_target is None else pool.pgp_num_target,
        pg_num_pending=pool.pg_num if pool.pg_num_pending is None else pool.pg_num_pending,
    )


def _list_merging(pool: Pool) -> tuple[PgId, PgId]:
    """Return the PG that is merged away and the PG that it is merged into."""
    last = pool.pg_num - 1
    return pg_id(pool.id, last), pg_id(pool.id, find_parent(last))


def _find_misplaced_ratio(told: Iterable[Pg], pools: dict[int, Pool]) -> float:
    """Return the share of all objects' copies that are misplaced by the mgr's reports."""
    misplaced = copies = 0
    for pg in told:
        copies += pg.objects * pools[pg.pool].size
        misplaced += pg.objects * len(set(pg.up) - set(pg.acting))
    return misplaced / copies if copies else 0.0


@dataclass(frozen=True, slots=True)
class _Merge:
    changes: PoolChanges
    pool: int

    def __call__(self) -> None:
        self.changes.merge_last_pg(self.pool)
