"""Which PGs a change of CRUSH weights can move at all: those for which a lowered item wins a straw it may then lose.

Lowering an item's weight shortens only its own straws, so a placement can change only where that item has won and no
longer surely does. One pass finds all of them, and what it finds holds for every weight on the way down: a rung of
a ladder need place no other PG.

With weight-sets the same holds for every position of a PG's set: a straw has the weight that its position has in the
set of the pool, and "lowered" means that no weight at any position is higher. The numbers that are hashed stay.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from predrain.actions.crush.choose import FULL_WEIGHT, Chooser, Ints
from predrain.actions.crush.map import COMPAT_SET, ITEM_NONE, CrushMap, Rule
from predrain.actions.crush.pool import Pool
from predrain.actions.crush.raw_sets import compute_raw_sets, find_placement_seeds
from predrain.actions.crush.straws import weigh_straws
from predrain.data.ids import OsdId, PgId, pg_id


class _Watch(Chooser):
    """A placement that notes the seeds for which an item wins now and might lose at its lowest weight."""

    def __init__(self, crush: CrushMap, lowest: CrushMap, reweights: Mapping[int, int]) -> None:
        self._floor = Chooser(lowest, reweights)
        self._settled_by: dict[int, Ints] = {}
        self.seeds: set[int] = set()
        super().__init__(crush, reweights)

    def _use_straws_of(self, pool: int) -> None:
        super()._use_straws_of(pool)
        self._floor._use_straws_of(pool)
        self._lowest = self._floor._straws

    def place(self, rule: Rule, seeds: Ints, size: int, pool: int = COMPAT_SET) -> Ints:
        """As a Chooser does it; the seeds that may be placed otherwise are in `seeds` then."""
        self._use_straws_of(pool)
        if pool not in self._settled_by:
            self._settled_by[pool] = self._find_settled(self._crush)
        self._settled = self._settled_by[pool]
        return super().place(rule, seeds, size, pool)

    def _find_settled(self, crush: CrushMap) -> Ints:
        """For each bucket's row an OSD that stands for all of its OSDs, or ITEM_NONE where they must be drawn.

        A bucket of OSDs that are all at override 1, and whose weights all stay, takes every PG at its first try. Which
        of its OSDs takes the PG decides nothing for the PG's other members while no other bucket of a tree holds it.
        """
        settled = np.full(len(self._sizes), ITEM_NONE, dtype=np.int64)
        if not _is_forest(crush):
            return settled
        positions = range(max(self._straws.positions, self._lowest.positions))
        stays = np.all(
            [self._straws.weights_at(at) == self._lowest.weights_at(at) for at in positions], axis=(0, 2)
        )
        for id_, row in self._rows_of.items():
            osds = crush.buckets[id_].items
            if stays[row] and osds and min(osds) >= 0 and (self._reweights[list(osds)] >= FULL_WEIGHT).all():
                settled[row] = osds[0]
        return settled

    def _leaf(
        self,
        bucket: Ints,
        seeds: Ints,
        base: Ints,
        step: int,
        tries: int,
        avoided: Ints | None,
        position: Ints | None,
    ) -> Ints:
        found = self._settled[self._row_by_negative[-bucket]]
        drawn = np.flatnonzero(found == ITEM_NONE)
        found[drawn] = super()._leaf(
            bucket[drawn],
            seeds[drawn],
            base[drawn],
            step,
            tries,
            None if avoided is None else avoided[drawn],
            None if position is None else position[drawn],
        )
        return found

    def _straw2(self, rows: Ints, seeds: Ints, r: Ints, position: Ints | None) -> Ints:
        items, cost, drawn = self._straws.draw(rows, seeds, r, position)
        at = np.arange(len(rows))
        first = cost.argmin(axis=1)
        low = self._lowest.find_weight(rows, position, first)
        doubtful = np.flatnonzero(low < self._straws.find_weight(rows, position, first))
        if len(doubtful):
            others = cost[doubtful].copy()
            others[np.arange(len(doubtful)), first[doubtful]] = np.iinfo(np.int64).max
            at_lowest = weigh_straws(drawn[doubtful, first[doubtful]], low[doubtful])
            lost = at_lowest >= others.min(axis=1)
            self.seeds.update(seeds[doubtful[lost]].tolist())
        best: Ints = items[at, first]
        return best


def _is_forest(crush: CrushMap) -> bool:
    """Whether each bucket has at most one parent, and each OSD stands once under each root."""
    inner = [item for bucket in crush.buckets.values() for item in bucket.items if item < 0]
    if len(set(inner)) < len(inner):
        return False
    for root in crush.buckets.keys() - set(inner):
        waiting, osds = [root], list[int]()
        while waiting:
            if (bucket := crush.buckets.get(waiting.pop())) is not None:
                waiting += [item for item in bucket.items if item < 0]
                osds += [item for item in bucket.items if item >= 0]
        if len(set(osds)) < len(osds):
            return False
    return True


def stirred(
    crush: CrushMap, lowest: CrushMap, pools: Mapping[int, Pool], reweights: Mapping[OsdId, float]
) -> frozenset[PgId]:
    """PGs whose placement may change anywhere between `crush` and `lowest`, the same map with some weights lowered.

    A few that stay where they are may be among them; none that moves is missing. Raises CannotPlace.
    """
    watch = _Watch(
        crush, lowest, {int(osd): round(weight * FULL_WEIGHT) for osd, weight in reweights.items()}
    )
    found: set[PgId] = set()
    for pool in pools.values():
        rows = np.arange(pool.pg_num, dtype=np.int64)
        watch.seeds.clear()
        compute_raw_sets(watch, crush, pool, rows)
        draws = find_placement_seeds(pool, rows).tolist()
        found.update(pg_id(pool.id, seed) for seed, draw in enumerate(draws) if draw in watch.seeds)
    return frozenset(found)
