"""The simulated OSD map: weights, upmap items, up OSDs, the PGs that a change may touch, and their places."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from predrain.actions.crush.crush_map import ITEM_NONE, CrushMap
from predrain.actions.crush.crush_reweight import with_crush_weight, without_osd
from predrain.actions.crush.crush_rules import FULL_WEIGHT, Chooser, Ints
from predrain.actions.crush.pg_placement import apply_effective_upmaps, led_by_affinity
from predrain.actions.crush.pool import Pool
from predrain.actions.crush.raw_sets import compute_raw_sets, find_placement_seeds
from predrain.actions.crush.upmap_check import UpmapCheck, find_upmap_check
from predrain.actions.simulator.cluster_spec import ClusterSpec
from predrain.data.ids import OsdId, PgId, pg_id


class OsdMap:
    """The mutable map. Every change raises `epoch` and returns the PGs (as indices) whose place may have
    changed.
    """

    def __init__(self, spec: ClusterSpec) -> None:
        self.epoch = 1
        self.osds_version = 1
        """Grows with each change of an OSD in the map."""
        self.crush: CrushMap = spec.crush
        self.pools: dict[int, Pool] = {each.pool.id: each.pool for each in spec.pools}
        self.pgs: dict[int, PgId] = {}
        """Every PG by its index. When the PG is merged away, no other PG gets its index."""
        self.index: dict[PgId, int] = {}
        self._places: dict[int, tuple[int, int]] = {}
        """Pool and seed of each PG."""
        self._indices: dict[int, Ints] = {}
        """The PGs of each pool, by seed."""
        self._next_index = 0
        for pool in self.pools.values():
            self._number_pgs(pool)
        self.reweights: dict[int, int] = {int(osd.id): FULL_WEIGHT for osd in spec.osds}
        self.old_weights: dict[int, int] = {}
        """Overrides in 16.16 that OSDs which were marked out get again when they come up. Source:
        OSDMonitor::tick, OSDMonitor::prepare_boot, OSDMap::apply_incremental.
        """
        self.affinities: dict[OsdId, float] = {}
        self.up: set[int] = {int(osd.id) for osd in spec.osds}
        self.upmaps: dict[PgId, tuple[tuple[int, int], ...]] = dict(spec.upmap_items)
        self.flags: frozenset[str] = frozenset()
        self._domains: dict[str, dict[int, int]] = {}
        self._checks: dict[int, UpmapCheck] = {}
        self._weights: dict[int, int] = {}
        self._home: dict[int, Ints] = {}
        self._raw: dict[int, Ints] = {}
        self._place_anew()

    def pool(self, index: int) -> Pool:
        """Return the PG's pool as it is now."""
        return self.pools[self._places[index][0]]

    def get_raw_set(self, index: int) -> list[int]:
        """Return CRUSH's own choice for the PG."""
        pool, seed = self._places[index]
        row: list[int] = self._raw[pool][seed].tolist()
        return row

    def get_upmapped_set(self, index: int) -> list[int]:
        """Return CRUSH's choice with the PG's upmap items applied, including OSDs that are down."""
        raw, pairs = self.get_raw_set(index), self.upmaps.get(self.pgs[index])
        return apply_effective_upmaps(raw, pairs, self.reweights) if pairs else raw

    def compute_up_set(self, index: int) -> tuple[int, ...]:
        """Return the PG's `up` set now."""
        mapped = self.get_upmapped_set(index)
        pool = self.pool(index)
        if pool.erasure:
            return tuple(osd if osd in self.up else ITEM_NONE for osd in mapped)
        placed = tuple(osd for osd in mapped if osd != ITEM_NONE and osd in self.up)
        if not self.affinities:
            return placed
        seed = np.array([self._places[index][1]], dtype=np.int64)
        return led_by_affinity(placed, int(find_placement_seeds(pool, seed)[0]), self.affinities)

    def crush_weight(self, osd: int) -> int:
        """Return the 16.16 weight of the OSD in its bucket; 0 if it is in none."""
        return self._weights.get(osd, 0)

    def change_pool(self, pool: Pool) -> set[int]:
        """Change `pg_num`, `pgp_num` or the rule of a pool. Return the PGs that stay and are placed
        differently.

        Upmap items of PGs that no longer exist stay until the mon's next check.
        """
        self.epoch += 1
        before = {self.pgs[index]: self.compute_up_set(index) for index in self._indices[pool.id].tolist()}
        self.pools = {**self.pools, pool.id: pool}
        self._checks.pop(pool.id, None)
        self._number_pgs(pool)
        self._place_pool(pool, self._list_choosers())
        return {
            self.index[pg]
            for pg, up in before.items()
            if pg in self.index and self.compute_up_set(self.index[pg]) != up
        }

    def set_reweight(self, osd: int, fixed: int) -> set[int]:
        """Set the override reweight in 16.16. Return the PGs whose place may have changed."""
        before = self.reweights[osd]
        if fixed == before:
            return set()
        self.epoch += 1
        self.osds_version += 1
        # Less weight turns away only PGs that hold the OSD; more draws back only PGs that are away from home.
        touched = self.find_pgs_chosen_for(osd) if fixed < before else self._away()
        self.reweights[osd] = fixed
        if fixed:
            self.old_weights.pop(osd, None)
        self._replace_rows(touched)
        return touched | self._list_upmapped_pgs()

    def mark_out(self, osd: int) -> set[int]:
        """Mark a long down OSD out; its override is kept for the time when it comes up."""
        weight = self.reweights[osd]
        touched = self.set_reweight(osd, 0)
        self.old_weights[osd] = weight
        return touched

    def set_crush_weight(self, osd: int, weight: int) -> set[int]:
        """Set the CRUSH weight in 16.16 and update the sums above it. Return the PGs whose place may have
        changed.
        """
        self.epoch += 1
        self.osds_version += 1
        self.crush = with_crush_weight(self.crush, osd, weight / FULL_WEIGHT)
        before = {pool: raw.copy() for pool, raw in self._raw.items()}
        self._place_anew()
        changed: set[int] = set()
        for pool in self.pools.values():
            changed |= set(self._rows(pool, (before[pool.id] != self._raw[pool.id]).any(axis=1)))
        return changed | self._list_upmapped_pgs()

    def purge(self, osd: int) -> set[int]:
        """Remove the OSD from the map and the tree. Upmap items that name it stay until the mon's next check."""
        touched = self.find_pgs_chosen_for(osd) | self.set_crush_weight(osd, 0)
        self.crush = without_osd(self.crush, osd)
        self.reweights.pop(osd, None)
        self.old_weights.pop(osd, None)
        self.affinities.pop(OsdId(osd), None)
        self.up.discard(osd)
        self._place_anew()
        return touched

    def set_up(self, osd: int, up: bool) -> set[int]:
        """Mark an OSD up or down. Return the PGs whose place may have changed."""
        if (osd in self.up) == up:
            return set()
        self.epoch += 1
        self.osds_version += 1
        (self.up.add if up else self.up.discard)(osd)
        return self.find_pgs_chosen_for(osd) | self._list_upmapped_pgs()

    def set_affinity(self, osd: OsdId, affinity: float) -> set[int]:
        """Set the primary affinity in [0, 1]. Return the PGs whose place may have changed."""
        self.epoch += 1
        self.osds_version += 1
        self.affinities.pop(osd, None)
        if affinity < 1.0:
            self.affinities[osd] = affinity
        return self.find_pgs_chosen_for(osd) | self._list_upmapped_pgs()

    def set_upmap_items(self, pg: PgId, pairs: tuple[tuple[int, int], ...] | None) -> set[int]:
        """Replace the PG's upmap items; None removes them. Return the PGs whose place may have changed."""
        if self.upmaps.get(pg) == pairs:
            return set()
        self.epoch += 1
        self.upmaps.pop(pg, None)
        if pairs:
            self.upmaps[pg] = pairs
        return {self.index[pg]} if pg in self.index else set()

    def clean_upmaps(self, to_drop: Iterable[PgId] = ()) -> set[int]:
        """Drop void upmap items, as the mon does after every map change; those of the PGs in `to_drop` are
        dropped in any case.

        A PG's whole list is dropped if the PG is gone or about to be merged. It is also dropped if its set
        would break the rule, or would use an OSD that is out, has no CRUSH weight or is not under the rule's
        buckets. A single pair is dropped if CRUSH no longer chooses its source, or if its target is out.
        Source: OSDMap::check_pg_upmaps; recorded on Pacific.
        """
        touched: set[int] = set()
        to_drop = set(to_drop)
        for pg, pairs in list(self.upmaps.items()):
            if pg not in self.index:
                self.set_upmap_items(pg, None)
                continue
            kept: tuple[tuple[int, int], ...] = ()
            index = self.index[pg]
            if not (pg in to_drop or self.is_merging(index) or self._is_void(index)):
                raw = self.get_raw_set(index)
                kept = tuple((old, new) for old, new in pairs if old in raw and self.reweights.get(new))
            if kept != pairs:
                touched |= self.set_upmap_items(pg, kept or None)
        return touched

    def _is_void(self, index: int) -> bool:
        """Return whether the mon drops all upmap items of the PG because of the set that they lead to."""
        pool = self.pool(index)
        if pool.id not in self._checks:
            self._checks[pool.id] = find_upmap_check(self.crush, pool)
        check = self._checks[pool.id]
        members = [osd for osd in self.get_upmapped_set(index) if osd != ITEM_NONE]
        return (
            not check.has_buckets(members)
            or not check.follows_branches(members)
            or not check.members.issuperset(members)
            or any(not self.reweights.get(osd) or not self.crush_weight(osd) for osd in members)
        )

    def is_merging(self, index: int) -> bool:
        """Return whether the PG is about to be merged into its parent, or its child into it."""
        pool_id, seed = self._places[index]
        pool = self.pools[pool_id]
        pending = pool.pg_num if pool.pg_num_pending is None else pool.pg_num_pending
        return seed >= pending or seed in {find_parent(child) for child in range(pending, pool.pg_num)}

    def find_pgs_chosen_for(self, osd: int) -> set[int]:
        """Return the PGs for which CRUSH chooses this OSD."""
        touched: set[int] = set()
        for pool in self.pools.values():
            touched |= set(self._rows(pool, (self._raw[pool.id] == osd).any(axis=1)))
        return touched

    def same_domain(self, index: int, osd: int, members: Iterable[int]) -> bool:
        """Return whether the OSD shares a failure domain of the PG's rule with one of `members`."""
        rule = self.crush.rules[self.pool(index).rule]
        domain = self._domain_of(next(step.type for step in rule.steps if step.op.startswith("choose")))
        return domain.get(osd) in {domain.get(member) for member in members if member != ITEM_NONE}

    def _list_upmapped_pgs(self) -> set[int]:
        return {self.index[pg] for pg in self.upmaps if pg in self.index}

    def _number_pgs(self, pool: Pool) -> None:
        """Give each new PG of the pool an index; existing PGs keep theirs."""
        rows = self._indices[pool.id].tolist() if pool.id in self._indices else []
        for index in rows[pool.pg_num :]:
            del self.index[self.pgs.pop(index)], self._places[index]
        fresh = range(self._next_index, self._next_index + max(0, pool.pg_num - len(rows)))
        for index, seed in zip(fresh, range(len(rows), pool.pg_num), strict=True):
            self.pgs[index] = pg_id(pool.id, seed)
            self.index[self.pgs[index]] = index
            self._places[index] = (pool.id, seed)
        self._next_index += len(fresh)
        self._indices[pool.id] = np.array([*rows[: pool.pg_num], *fresh], dtype=np.int64)

    def _rows(self, pool: Pool, mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[int]:
        found: list[int] = self._indices[pool.id][mask].tolist()
        return found

    def _away(self) -> set[int]:
        """Return PGs that an override has turned away from the place that CRUSH gives them with every OSD in."""
        touched: set[int] = set()
        for pool in self.pools.values():
            touched |= set(self._rows(pool, (self._raw[pool.id] != self._home[pool.id]).any(axis=1)))
        return touched

    def _place_anew(self) -> None:
        choosers = self._list_choosers()
        for pool in self.pools.values():
            self._place_pool(pool, choosers)
        self._domains, self._checks = {}, {}
        self._weights = {
            osd: weight
            for bucket in self.crush.buckets.values()
            for osd, weight in zip(bucket.items, bucket.weights, strict=True)
            if osd >= 0
        }

    def _list_choosers(self) -> tuple[Chooser, Chooser | None]:
        """Return a Chooser with every OSD in, and one with the overrides if they differ from that."""
        whole = dict.fromkeys(self.reweights, FULL_WEIGHT)
        # Placing 65,536 PGs takes half a minute: once is enough while no override turns any away.
        now = None if self.reweights == whole else Chooser(self.crush, self.reweights)
        return Chooser(self.crush, whole), now

    def _place_pool(self, pool: Pool, choosers: tuple[Chooser, Chooser | None]) -> None:
        at_home, now = choosers
        seeds = np.arange(pool.pg_num, dtype=np.int64)
        home = compute_raw_sets(at_home, self.crush, pool, seeds)
        self._home[pool.id] = home
        self._raw[pool.id] = home.copy() if now is None else compute_raw_sets(now, self.crush, pool, seeds)

    def _replace_rows(self, touched: set[int]) -> None:
        chooser = Chooser(self.crush, self.reweights)
        by_pool: dict[int, list[int]] = {}
        for index in sorted(touched):
            pool_id, seed = self._places[index]
            by_pool.setdefault(pool_id, []).append(seed)
        for pool_id, rows in by_pool.items():
            seeds = np.array(rows, dtype=np.int64)
            self._raw[pool_id][seeds] = compute_raw_sets(chooser, self.crush, self.pools[pool_id], seeds)

    def _domain_of(self, kind: str) -> dict[int, int]:
        """Return OSD -> the bucket of the given type above it."""
        if kind not in self._domains:
            # The shadow tree of a device class (`host1~ssd`) has the OSDs again, in buckets of the same types.
            named = [bucket for bucket in self.crush.buckets.values() if "~" not in bucket.name]
            parents = {item: bucket.id for bucket in named for item in bucket.items}
            domain: dict[int, int] = {}
            for osd in self.reweights:
                above = parents.get(osd)
                while above is not None and self.crush.buckets[above].type != kind:
                    above = parents.get(above)
                if above is not None:
                    domain[osd] = above
            self._domains[kind] = domain
        return self._domains[kind]


def find_parent(seed: int) -> int:
    """Return the seed of the PG that a PG was split from and is merged into: the seed without its highest
    bit.
    """
    return seed & ~(1 << (seed.bit_length() - 1))


def fixed_reweight(weight: float) -> int:
    """Return an override as the mon stores it: 16.16, truncated."""
    return int(weight * FULL_WEIGHT)
