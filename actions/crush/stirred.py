"""Which PGs a change of CRUSH weights can move at all: those for which a lowered item wins a straw it may then lose.

Lowering an item's weight shortens only its own straws, so a placement can change only where that item has won and no
longer surely does. One pass finds all of them, and what it finds holds for every weight on the way down: a rung of
a ladder need place no other PG.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from actions.cluster.view import Pool
from actions.crush.choose import FULL_WEIGHT, Chooser, Ints
from actions.crush.map import CrushMap
from actions.crush.place import placement_seeds, raw_sets
from data.ids import OsdId, PgId, pg_id


class _Watch(Chooser):
    """A placement that notes the seeds for which an item wins now and might lose at its lowest weight."""

    def __init__(self, crush: CrushMap, lowest: CrushMap, reweights: Mapping[int, int]) -> None:
        super().__init__(crush, reweights)
        self._lowest = Chooser(lowest, reweights)._weights
        self.seeds: set[int] = set()

    def _straw2(self, rows: Ints, seeds: Ints, r: Ints) -> Ints:
        items, cost, drawn = self._straws(rows, seeds, r)
        at = np.arange(len(rows))
        first = cost.argmin(axis=1)
        low = self._lowest[rows, first]
        doubtful = np.flatnonzero(low < self._weights[rows, first])
        if len(doubtful):
            others = cost[doubtful].copy()
            others[np.arange(len(doubtful)), first[doubtful]] = np.iinfo(np.int64).max
            at_lowest = self._cost(drawn[doubtful, first[doubtful]], low[doubtful])
            lost = at_lowest >= others.min(axis=1)
            self.seeds.update(seeds[doubtful[lost]].tolist())
        best: Ints = items[at, first]
        return best


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
        raw_sets(watch, crush, pool, rows)
        draws = placement_seeds(pool, rows).tolist()
        found.update(pg_id(pool.id, seed) for seed, draw in enumerate(draws) if draw in watch.seeds)
    return frozenset(found)
