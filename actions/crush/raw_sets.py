"""A cache of CRUSH's raw choice for PGs, computed once for each map and its overrides.

In one poll, planning, each guard and each way back ask for the places of the same few PGs many times. The
answer changes only with a weight, a rule or a pool, so the last few maps are cached. If overrides have only fallen
since one of these maps, the sets without the OSDs concerned are taken from it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import numpy as np
import numpy.typing as npt

from predrain.actions.crush.crush_hash import hash_two_words
from predrain.actions.crush.crush_map import CrushMap
from predrain.actions.crush.crush_rules import FULL_WEIGHT, CannotPlace, Chooser, Ints
from predrain.actions.crush.pool import Pool
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind

_Shape = tuple[int, int, int, int, int, int | None, bool]
_Key = tuple[_Shape, frozenset[int], frozenset[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class FixedOverrides:
    """The 16.16 override of each OSD. An OSD that is not named is out."""

    weights: Mapping[int, int]
    osds: frozenset[int]
    lowered: frozenset[tuple[int, int]]
    """The overrides other than 1, of the OSDs that are named."""

    def list_fallen_osds(self, before: FixedOverrides) -> list[int] | None:
        """Return the OSDs whose override was higher before; None if an override was lower, or OSDs came or went."""
        if self.osds != before.osds:
            return None
        changed = {osd for osd, _ in self.lowered ^ before.lowered}
        return None if any(self.weights[osd] > before.weights[osd] for osd in changed) else list(changed)


@lru_cache(maxsize=32)
def _find_equal_overrides(osds: frozenset[int], lowered: frozenset[tuple[int, int]]) -> FixedOverrides:
    return FixedOverrides(dict.fromkeys(osds, FULL_WEIGHT) | dict(lowered), osds, lowered)


def fix_overrides(weights: Mapping[int, int]) -> FixedOverrides:
    """Return the 16.16 overrides of OSDs; equal ones are one object, so that each later comparison is one of
    identity.
    """
    lowered = frozenset(pair for pair in weights.items() if pair[1] != FULL_WEIGHT)
    return _find_equal_overrides(frozenset(weights), lowered)


@dataclass(frozen=True, slots=True)
class _Table:
    """The sets of one pool under one map; `known` marks the rows that are complete.

    crush: kept here, so that no other map can get the same identity.
    """

    crush: CrushMap
    overrides: FixedOverrides
    sets: npt.NDArray[np.int32]
    known: npt.NDArray[np.bool_]

    def set_rows(self, rows: Ints, sets: npt.NDArray[np.int32] | Ints) -> None:
        """Set these rows."""
        self.sets[rows] = sets
        self.known[rows] = True  # last, because another thread reads a row only if it is complete

    def copy_unchanged_rows(self, rows: Ints, other: _Table) -> None:
        """Copy those of the rows that another table has, and that the overrides which fell since have not changed.

        A lower override makes CRUSH reject an OSD for more PGs, and for no PG that it rejected the OSD for before. An
        OSD that CRUSH accepts is in the set, so a set without the OSD stays as it is. Source: is_out, and the loops of
        crush_choose_firstn and crush_choose_indep.
        """
        fallen = self.overrides.list_fallen_osds(other.overrides)
        if fallen is None or len(other.known) <= rows.max():
            return
        held = rows[other.known[rows]]
        sets = other.sets[held]
        unchanged = ~np.isin(sets, fallen).any(axis=1)
        self.set_rows(held[unchanged], sets[unchanged])


class RawSets:
    """Raw sets by map, overrides and pool, for the last `limit` combinations. Threads may share an instance."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tables: OrderedDict[_Key, _Table] = OrderedDict()
        self._lock = Lock()

    def find(self, crush: CrushMap, overrides: FixedOverrides, pool: Pool, seeds: Ints) -> Ints:
        """Return (n, size) OSDs for (n,) PG seeds of a pool, before upmap items and down OSDs. Raises CannotPlace."""
        rows = max(pool.pg_num, int(seeds.max(initial=-1)) + 1)
        table, others = self._find_tables(crush, overrides, pool, rows)
        missing = np.unique(seeds[~table.known[seeds]])
        for other in others:
            if len(missing):
                table.copy_unchanged_rows(missing, other)
                missing = missing[~table.known[missing]]
        if len(missing):
            chooser = Chooser(crush, overrides.weights)
            table.set_rows(missing, compute_raw_sets(chooser, crush, pool, missing))
        return table.sets[seeds].astype(np.int64)

    def _find_tables(
        self, crush: CrushMap, overrides: FixedOverrides, pool: Pool, rows: int
    ) -> tuple[_Table, list[_Table]]:
        """Return the table, and those of the same map and pool with other overrides, the newest first."""
        shape: _Shape = (
            id(crush),
            pool.id,
            pool.rule,
            pool.size,
            pool.pg_num,
            pool.pgp_num,
            pool.hashpspool,
        )
        key: _Key = shape, overrides.osds, overrides.lowered
        with self._lock:
            table = self._tables.get(key)
            if table is None or len(table.known) < rows:
                table = _Table(
                    crush, overrides, np.zeros((rows, pool.size), np.int32), np.zeros(rows, np.bool_)
                )
                self._tables[key] = table
            self._tables.move_to_end(key)
            while len(self._tables) > self._limit:
                self._tables.popitem(last=False)
            others = [
                known
                for other, known in reversed(self._tables.items())
                if other[0] == shape and known is not table
            ]
        return table, others


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
