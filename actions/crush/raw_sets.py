"""A cache of CRUSH's raw choice for PGs, computed once for each map and its overrides.

In one poll, planning, each guard and each way back ask for the places of the same few PGs many times. The
answer changes only with a weight, a rule or a pool, so the last few maps are cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

import numpy as np
import numpy.typing as npt

from predrain.actions.crush.crush_hash import hash_two_words
from predrain.actions.crush.crush_map import CrushMap
from predrain.actions.crush.crush_rules import CannotPlace, Chooser, Ints
from predrain.actions.crush.pool import Pool
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind

_Key = tuple[int, int, int, int, int, int | None, bool, frozenset[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class _Table:
    """The sets of one pool under one map; `known` marks the rows that are computed.

    crush: kept here, so that no other map can get the same identity.
    """

    crush: CrushMap
    sets: npt.NDArray[np.int32]
    known: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FixedOverrides:
    """The 16.16 override of each OSD. An OSD that is not named is out."""

    weights: Mapping[int, int]
    key: frozenset[tuple[int, int]]
    """The same, to find sets that were computed under equal overrides."""

    @classmethod
    def from_weights(cls, weights: Mapping[int, int]) -> FixedOverrides:
        """Return the overrides of OSDs."""
        return cls(weights, frozenset(weights.items()))


class RawSets:
    """Raw sets by map, overrides and pool, for the last `limit` combinations. Threads may share an instance."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tables: OrderedDict[_Key, _Table] = OrderedDict()
        self._lock = Lock()

    def find(self, crush: CrushMap, overrides: FixedOverrides, pool: Pool, seeds: Ints) -> Ints:
        """Return (n, size) OSDs for (n,) PG seeds of a pool, before upmap items and down OSDs. Raises CannotPlace."""
        rows = max(pool.pg_num, int(seeds.max(initial=-1)) + 1)
        table = self._find_table(crush, overrides.key, pool, rows)
        missing = np.unique(seeds[~table.known[seeds]])
        if len(missing):
            table.sets[missing] = compute_raw_sets(Chooser(crush, overrides.weights), crush, pool, missing)
            table.known[missing] = True  # last, because another thread reads a row only if it is complete
        return table.sets[seeds].astype(np.int64)

    def _find_table(
        self, crush: CrushMap, overrides: frozenset[tuple[int, int]], pool: Pool, rows: int
    ) -> _Table:
        shape = (pool.id, pool.rule, pool.size, pool.pg_num, pool.pgp_num, pool.hashpspool)
        key: _Key = (id(crush), *shape, overrides)
        with self._lock:
            table = self._tables.get(key)
            if table is None or len(table.known) < rows:
                table = _Table(crush, np.zeros((rows, pool.size), np.int32), np.zeros(rows, np.bool_))
                self._tables[key] = table
            self._tables.move_to_end(key)
            while len(self._tables) > self._limit:
                self._tables.popitem(last=False)
        return table


def compute_raw_sets(chooser: Chooser, crush: CrushMap, pool: Pool, seeds: Ints) -> Ints:
    """Compute CRUSH's raw choice, before upmap items and down OSDs: (n,) PG seeds of one pool -> (n, size)
    OSDs.

    Raises CannotPlace.
    """
    rule = crush.rules.get(pool.rule)
    if rule is None:
        raise CannotPlace(PlanRefusal(PlanRefusalKind.RULE_MISSING, pool=pool.name, rule=pool.rule))
    return chooser.place(rule, find_placement_seeds(pool, seeds), pool.size, pool.id)


def find_placement_seeds(pool: Pool, seeds: Ints) -> Ints:
    """Return CRUSH's input for each PG: its seed folded to pgp_num (ceph_stable_mod), hashed with the pool.

    Without `hashpspool` the pool is added (pg_pool_t::raw_pg_to_pps), and PGs of several pools get the same
    places.
    """
    apart = pool.pg_num if pool.pgp_num is None else pool.pgp_num
    mask = (1 << max(apart - 1, 0).bit_length()) - 1
    folded = np.where((seeds & mask) < apart, seeds & mask, seeds & (mask >> 1))
    if not pool.hashpspool:
        return folded + pool.id
    return hash_two_words(folded.astype(np.uint32), np.array(pool.id, dtype=np.uint32)).astype(np.int64)
