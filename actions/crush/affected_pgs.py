"""Finds the PGs that a change of CRUSH weights can move: those for which a lowered item wins a straw it may
then lose.

Lowering an item's weight shortens only its own straws. A placement can therefore change only where that item
has won and is no longer sure to win. One pass finds all such PGs, and its result holds for every weight on
the way down: a reweight step needs to place no other PG.

If the members of a PG are known, few items can win its draws (`actions.crush.draw_candidates`). A PG without a
member below a lowered item is then not placed at all, and the others are placed from few straws.

With weight-sets the same holds for every position of a PG's set. A straw has the weight of its position in
the set of the pool, and "lowered" means that no weight at any position is higher. The hashed numbers do not
change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from predrain.actions.crush.crush_map import COMPAT_SET, ITEM_NONE, CrushMap, CrushRule
from predrain.actions.crush.crush_rules import FULL_WEIGHT, Chooser, Ints
from predrain.actions.crush.draw_candidates import Bools, CandidateTable, find_choice, is_forest
from predrain.actions.crush.pool import Pool
from predrain.actions.crush.raw_sets import compute_raw_sets, find_placement_seeds
from predrain.actions.crush.straw2 import NEVER, weigh_straws
from predrain.data.ids import OsdId, PgId, pg_id, pg_seed

_SLICE = 1 << 14
"""PGs whose members are kept as arrays at once."""


@dataclass(frozen=True, slots=True)
class KnownMembers:
    """Knowledge about PGs before they are placed; it saves most of the work and does not change the answer."""

    osds: Mapping[PgId, Collection[int]]
    """OSDs that include the raw set of a PG (CRUSH's own choice), except OSDs that are down. A PG that is
    missing is computed in full.
    """
    down: Set[OsdId] = frozenset()
    find_pgs: Callable[[Collection[int]], Iterable[PgId]] | None = None
    """Returns the PGs that may have any of some OSDs, and perhaps others; None: all PGs are searched."""

    def list_candidates(self, osds: Collection[int]) -> Iterable[PgId]:
        """Return the PGs that may have any of `osds`."""
        return self.osds if self.find_pgs is None else self.find_pgs(osds)


@dataclass(frozen=True, slots=True)
class _Known:
    """PGs whose members are known, by their placement seeds in ascending order."""

    table: CandidateTable
    seeds: Ints
    members: Ints
    """(n, most)."""
    first_columns: Ints
    """(n, most): the candidates in the root."""


class _Watch(Chooser):
    """A placement that records the seeds for which an item wins now and might lose at its lowest weight."""

    def __init__(self, crush: CrushMap, lowest: CrushMap, reweights: Mapping[int, int]) -> None:
        self._floor = Chooser(lowest, reweights)
        self._settled_by: dict[int, Ints] = {}
        self._is_forest = is_forest(crush)
        self._known: _Known | None = None
        self.seeds: set[int] = set()
        super().__init__(crush, reweights)

    def _use_straws_of(self, pool: int) -> None:
        super()._use_straws_of(pool)
        self._floor._use_straws_of(pool)
        self._lowest = self._floor._straws

    def place(self, rule: CrushRule, seeds: Ints, size: int, pool: int = COMPAT_SET) -> Ints:
        """Place PGs as a Chooser does; afterwards `seeds` holds the seeds that may be placed differently."""
        self._use_straws_of(pool)
        if pool not in self._settled_by:
            self._settled_by[pool] = self._find_settled(self._crush)
        self._settled = self._settled_by[pool]
        return super().place(rule, seeds, size, pool)

    def build_tables(self, pools: Mapping[int, Pool], down: Set[OsdId]) -> dict[int, CandidateTable]:
        """Return, by pool, the items that can win a draw of its PGs.

        A pool is missing if the map or its rule allows any item.
        """
        tables: dict[int, CandidateTable] = {}
        rejectable = {*np.flatnonzero(self._reweights < FULL_WEIGHT).tolist(), *down}
        made: dict[tuple[int, str, int], CandidateTable] = {}
        for id_, pool in pools.items() if self._is_forest else ():
            rule = self._crush.rules.get(pool.rule)
            choice = find_choice(self._crush, rule) if rule is not None else None
            if choice is None:
                continue
            self._use_straws_of(id_)
            key = (*choice, id(self._straws))  # the Chooser keeps them
            if key not in made:
                lowered: Bools = np.any([now > low for now, low in self._list_weights()], axis=0)
                made[key] = CandidateTable(
                    self._crush, *choice, rejectable, self._straws.find_drawable(), lowered
                )
            tables[id_] = made[key]
        return tables

    def place_known(self, pool: Pool, members: Mapping[int, Collection[int]], table: CandidateTable) -> None:
        """Place PGs of a pool whose members are known, by seed."""
        every = np.array(list(members), dtype=np.int64)
        for start in range(0, len(every), _SLICE):
            seeds = every[start : start + _SLICE]
            draws, order = np.unique(find_placement_seeds(pool, seeds), return_index=True)
            found = table.fill_members([members[seed] for seed in seeds[order].tolist()])
            self._known = _Known(table, draws, found, table.find_first_columns(found))
            compute_raw_sets(self, self._crush, pool, seeds)
        self._known = None

    def confirm_seeds(self, pool: Pool, seeds: Ints) -> Ints:
        """Return the PGs whose draws are in `seeds` and are really made, not only drawn ahead."""
        draws = find_placement_seeds(pool, seeds)
        noted = np.isin(draws, list(self.seeds))
        self.seeds.clear()
        self._drawn_ahead = 1
        compute_raw_sets(self, self._crush, pool, seeds[noted])
        self._drawn_ahead = super()._drawn_ahead
        confirmed: Ints = seeds[noted][np.isin(draws[noted], list(self.seeds))]
        return confirmed

    def _list_weights(self) -> list[tuple[Ints, Ints]]:
        """Return the weights of every item and its lowest ones, by position."""
        positions = range(max(self._straws.positions, self._lowest.positions))
        return [(self._straws.weights_at(at), self._lowest.weights_at(at)) for at in positions]

    def _find_settled(self, crush: CrushMap) -> Ints:
        """Return, for each bucket's row, an OSD that stands for all of its OSDs, or ITEM_NONE if they must be
        drawn.

        A bucket of OSDs that are all at override 1 and keep their weights takes every PG at its first try. If
        no other bucket of a tree holds these OSDs, the choice among them has no effect on the PG's other
        members.
        """
        settled = np.full(len(self._sizes), ITEM_NONE, dtype=np.int64)
        if not self._is_forest:
            return settled
        stays = np.all([now == low for now, low in self._list_weights()], axis=(0, 2))
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
        if self._known is None:
            return self._draw_all(rows, seeds, r, position)
        columns = self._draw_candidates(self._known, rows, seeds, r, position)
        won = np.flatnonzero(self._known.table.lowered[rows, columns])
        if len(won):
            self._draw_all(rows[won], seeds[won], r[won], None if position is None else position[won])
        best: Ints = self._straws.items[rows, columns]
        return best

    def _draw_candidates(
        self, known: _Known, rows: Ints, seeds: Ints, r: Ints, position: Ints | None
    ) -> Ints:
        """Return the column of the longest straw in each row's bucket, among the items that can have it."""
        pg = np.searchsorted(known.seeds, seeds)
        if (rows == known.table.root).all():
            columns = known.first_columns[pg]
            where = None if position is None else position[:, None]
            cost = self._straws.weigh_items(rows[:, None], columns, seeds[:, None], r[:, None], where)
            first: Ints = columns[np.arange(len(rows)), cost.argmin(axis=1)]
            return first
        width = int(self._sizes[rows].max())
        at, column = np.nonzero(known.table.find_candidates(rows, known.members[pg], width))
        where = None if position is None else position[at]
        costs = np.full((len(rows), width), NEVER, dtype=np.int64)
        costs[at, column] = self._straws.weigh_items(rows[at], column, seeds[at], r[at], where)
        lowest: Ints = costs.argmin(axis=1)
        return lowest

    def _draw_all(self, rows: Ints, seeds: Ints, r: Ints, position: Ints | None) -> Ints:
        """Draw as a Chooser does, and record the seeds."""
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


def find_affected_pgs(
    crush: CrushMap,
    lowest: CrushMap,
    pools: Mapping[int, Pool],
    reweights: Mapping[OsdId, float],
    known: KnownMembers | None = None,
) -> frozenset[PgId]:
    """Find PGs whose placement may change between `crush` and `lowest`, the same map with some weights
    lowered.

    The result may contain a few PGs that do not move, and misses none that moves. Raises CannotPlace.
    """
    watch = _Watch(
        crush, lowest, {int(osd): round(weight * FULL_WEIGHT) for osd, weight in reweights.items()}
    )
    tables = watch.build_tables(pools, known.down) if known is not None else {}
    left = _list_unknown(pools, known, tables)
    begun = _list_lowered(known, tables) if known is not None else {}
    found: set[PgId] = set()
    for id_, pool in pools.items():
        watch.seeds.clear()
        compute_raw_sets(watch, crush, pool, np.array(left[id_], dtype=np.int64))
        if id_ in begun:
            watch.place_known(pool, begun[id_], tables[id_])
        rows = np.arange(pool.pg_num, dtype=np.int64)
        found.update(pg_id(id_, seed) for seed in watch.confirm_seeds(pool, rows).tolist())
    return frozenset(found)


def _list_unknown(
    pools: Mapping[int, Pool], known: KnownMembers | None, tables: Mapping[int, CandidateTable]
) -> dict[int, Sequence[int]]:
    """Return, by pool, the seeds of PGs whose members are not known."""
    left: dict[int, Sequence[int]] = {id_: range(pool.pg_num) for id_, pool in pools.items()}
    if known is None or len(known.osds) >= sum(pool.pg_num for pool in pools.values()):
        return {id_: () if id_ in tables else seeds for id_, seeds in left.items()}
    for id_ in tables:
        left[id_] = [seed for seed in left[id_] if pg_id(id_, seed) not in known.osds]
    return left


def _list_lowered(
    known: KnownMembers, tables: Mapping[int, CandidateTable]
) -> dict[int, dict[int, Collection[int]]]:
    """Return, by pool and seed, the members of PGs that may have a draw that a lowered item wins."""
    found: dict[int, dict[int, Collection[int]]] = {id_: {} for id_ in tables}
    every = {id_ for id_, table in tables.items() if table.reaches_every_pg}
    lowered = frozenset[int]().union(*(table.lowered_osds for table in tables.values()))
    for pg in known.osds if every else known.list_candidates(lowered):
        osds = known.osds.get(pg, ())
        if lowered.isdisjoint(osds) and not every:
            continue
        pool, seed = pg_seed(pg)
        if pool in every or (pool in tables and not tables[pool].lowered_osds.isdisjoint(osds)):
            found[pool][seed] = osds
    return found
