"""What CRUSH itself says of PGs, computed once for each map and its overrides.

A look at the cluster asks many times where the same few PGs would lie: planning, each guard and each way back. Nothing
of the answer changes until a weight, a rule or a pool does, so it is kept for the last few maps.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

import numpy as np
import numpy.typing as npt

from predrain.actions.crush.choose import CannotPlace, Chooser, Ints
from predrain.actions.crush.hashing import hash2
from predrain.actions.crush.map import CrushMap
from predrain.actions.crush.pool import Pool

_Key = tuple[int, int, int, int, int, int | None, bool, frozenset[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class _Table:
    """The sets of one pool under one map; `known` says which rows are computed.

    crush: held here, so that no other map can have its identity.
    """

    crush: CrushMap
    sets: npt.NDArray[np.int32]
    known: npt.NDArray[np.bool_]


class RawSets:
    """Raw sets by map, overrides and pool: those of the last `limit` of them. Threads may share it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tables: OrderedDict[_Key, _Table] = OrderedDict()
        self._lock = Lock()

    def find(self, crush: CrushMap, reweights: Mapping[int, int], pool: Pool, seeds: Ints) -> Ints:
        """(n,) PG seeds of a pool -> (n, size) OSDs, before upmaps and down OSDs.

        reweights: 16.16 override of each OSD; an OSD that is not named is out. Raises CannotPlace.
        """
        rows = max(pool.pg_num, int(seeds.max(initial=-1)) + 1)
        table = self._find_table(crush, reweights, pool, rows)
        missing = np.unique(seeds[~table.known[seeds]])
        if len(missing):
            table.sets[missing] = compute_raw_sets(Chooser(crush, reweights), crush, pool, missing)
            table.known[missing] = True  # last: another thread reads a row only when it is whole
        return table.sets[seeds].astype(np.int64)

    def _find_table(self, crush: CrushMap, reweights: Mapping[int, int], pool: Pool, rows: int) -> _Table:
        overrides = frozenset(reweights.items())
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
    """What CRUSH itself says, before upmaps and down OSDs: (n,) PG seeds of one pool -> (n, size)."""
    rule = crush.rules.get(pool.rule)
    if rule is None:
        raise CannotPlace(f"Pool {pool.name} uses CRUSH rule {pool.rule}, which the map does not have.")
    return chooser.place(rule, find_placement_seeds(pool, seeds), pool.size, pool.id)


def find_placement_seeds(pool: Pool, seeds: Ints) -> Ints:
    """CRUSH's input for each PG: its seed folded to pgp_num (ceph_stable_mod), hashed with the pool.

    Without `hashpspool` the pool is added (pg_pool_t::raw_pg_to_pps), and PGs of several pools fall together.
    """
    apart = pool.pg_num if pool.pgp_num is None else pool.pgp_num
    mask = (1 << max(apart - 1, 0).bit_length()) - 1
    folded = np.where((seeds & mask) < apart, seeds & mask, seeds & (mask >> 1))
    if not pool.hashpspool:
        return folded + pool.id
    return hash2(folded.astype(np.uint32), np.array(pool.id, dtype=np.uint32)).astype(np.int64)
