"""The simulated OSD map: weights, pins, who is up; which PGs a change may touch and where they belong."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from predrain.actions.crush.choose import FULL_WEIGHT, Chooser, Ints
from predrain.actions.crush.map import ITEM_NONE, CrushMap
from predrain.actions.crush.place import led_by_affinity, upmapped
from predrain.actions.crush.pool import Pool
from predrain.actions.crush.raw_sets import compute_raw_sets, find_placement_seeds
from predrain.actions.crush.reweigh import with_crush_weight, without_osd
from predrain.actions.simulator.spec import ClusterSpec
from predrain.data.ids import OsdId, PgId, pg_id


class OsdMap:
    """Mutable; every change raises `epoch` and returns the PGs (as indices) whose place may have changed."""

    def __init__(self, spec: ClusterSpec) -> None:
        self.epoch = 1
        self.crush: CrushMap = spec.crush
        self.pools: dict[int, Pool] = {each.pool.id: each.pool for each in spec.pools}
        self.pgs: dict[int, PgId] = {}
        """Every PG by its index, which no other PG gets when this one is merged away."""
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
        OSDMonitor::tick, OSDMonitor::prepare_boot, OSDMap::apply_incremental."""
        self.affinities: dict[OsdId, float] = {}
        self.up: set[int] = {int(osd.id) for osd in spec.osds}
        self.upmaps: dict[PgId, tuple[tuple[int, int], ...]] = dict(spec.upmap_items)
        self.flags: frozenset[str] = frozenset()
        self._domains: dict[str, dict[int, int]] = {}
        self._members: dict[int, frozenset[int]] = {}
        self._weights: dict[int, int] = {}
        self._home: dict[int, Ints] = {}
        self._raw: dict[int, Ints] = {}
        self._place_anew()

    def pool(self, index: int) -> Pool:
        """The PG's pool as it is now."""
        return self.pools[self._places[index][0]]

    def raw(self, index: int) -> list[int]:
        """CRUSH's own choice."""
        pool, seed = self._places[index]
        row: list[int] = self._raw[pool][seed].tolist()
        return row

    def pinned(self, index: int) -> list[int]:
        """CRUSH's choice with the PG's pins applied, whoever is down."""
        raw, pairs = self.raw(index), self.upmaps.get(self.pgs[index])
        return upmapped(raw, pairs, self.reweights) if pairs else raw

    def place(self, index: int) -> tuple[int, ...]:
        """The PG's `up` set now."""
        pinned = self.pinned(index)
        pool = self.pool(index)
        if pool.erasure:
            return tuple(osd if osd in self.up else ITEM_NONE for osd in pinned)
        placed = tuple(osd for osd in pinned if osd != ITEM_NONE and osd in self.up)
        if not self.affinities:
            return placed
        seed = np.array([self._places[index][1]], dtype=np.int64)
        return led_by_affinity(placed, int(find_placement_seeds(pool, seed)[0]), self.affinities)

    def crush_weight(self, osd: int) -> int:
        """16.16 weight of the OSD in its bucket; 0 where it is in none."""
        return self._weights.get(osd, 0)

    def change_pool(self, pool: Pool) -> set[int]:
        """Another `pg_num`, `pgp_num` or rule of a pool. Returns the PGs that stay and are placed otherwise.

        Upmaps of PGs that are no more stay until the mon looks them over.
        """
        self.epoch += 1
        before = {self.pgs[index]: self.place(index) for index in self._indices[pool.id].tolist()}
        self.pools = {**self.pools, pool.id: pool}
        self._number_pgs(pool)
        self._place_pool(pool, self._list_choosers())
        return {
            self.index[pg]
            for pg, up in before.items()
            if pg in self.index and self.place(self.index[pg]) != up
        }

    def set_reweight(self, osd: int, fixed: int) -> set[int]:
        """Override reweight in 16.16."""
        before = self.reweights[osd]
        if fixed == before:
            return set()
        self.epoch += 1
        # Less weight turns away only PGs that hold the OSD; more draws back only PGs that are away from home.
        touched = self.holding(osd) if fixed < before else self._away()
        self.reweights[osd] = fixed
        if fixed:
            self.old_weights.pop(osd, None)
        self._replace_rows(touched)
        return touched | self._pinned_pgs()

    def mark_out(self, osd: int) -> set[int]:
        """Out, since it is long down; its override is kept for the time when it comes up."""
        weight = self.reweights[osd]
        touched = self.set_reweight(osd, 0)
        self.old_weights[osd] = weight
        return touched

    def set_crush_weight(self, osd: int, weight: int) -> set[int]:
        """CRUSH weight in 16.16, carried up the tree."""
        self.epoch += 1
        self.crush = with_crush_weight(self.crush, osd, weight / FULL_WEIGHT)
        before = {pool: raw.copy() for pool, raw in self._raw.items()}
        self._place_anew()
        changed: set[int] = set()
        for pool in self.pools.values():
            changed |= set(self._rows(pool, (before[pool.id] != self._raw[pool.id]).any(axis=1)))
        return changed | self._pinned_pgs()

    def purge(self, osd: int) -> set[int]:
        """Take the OSD out of the map and the tree. Pins that name it stay until the mon looks them over."""
        touched = self.holding(osd) | self.set_crush_weight(osd, 0)
        self.crush = without_osd(self.crush, osd)
        self.reweights.pop(osd, None)
        self.old_weights.pop(osd, None)
        self.affinities.pop(OsdId(osd), None)
        self.up.discard(osd)
        self._place_anew()
        return touched

    def set_up(self, osd: int, up: bool) -> set[int]:
        """Mark an OSD up or down."""
        if (osd in self.up) == up:
            return set()
        self.epoch += 1
        (self.up.add if up else self.up.discard)(osd)
        return self.holding(osd) | self._pinned_pgs()

    def set_affinity(self, osd: OsdId, affinity: float) -> set[int]:
        """Primary affinity in [0, 1]."""
        self.epoch += 1
        self.affinities.pop(osd, None)
        if affinity < 1.0:
            self.affinities[osd] = affinity
        return self.holding(osd) | self._pinned_pgs()

    def pin(self, pg: PgId, pairs: tuple[tuple[int, int], ...] | None) -> set[int]:
        """Replace the PG's upmap items; None removes them."""
        if self.upmaps.get(pg) == pairs:
            return set()
        self.epoch += 1
        self.upmaps.pop(pg, None)
        if pairs:
            self.upmaps[pg] = pairs
        return {self.index[pg]} if pg in self.index else set()

    def clean_pins(self, doomed: Iterable[PgId] = ()) -> set[int]:
        """Drop pins that are void, as the mon does after every map change; those in `doomed` go in any case.

        A PG's whole list goes when the PG is gone or about to be merged, when its set would use an OSD that is out, has
        no CRUSH weight or is not under the rule's buckets, or would not be one of the rule's; a single pair goes when
        CRUSH no longer chooses its source. Source: OSDMap::check_pg_upmaps.
        """
        touched: set[int] = set()
        doomed = set(doomed)
        for pg, pairs in list(self.upmaps.items()):
            if pg not in self.index:
                self.pin(pg, None)
                continue
            index = self.index[pg]
            pool = self.pool(index)
            raw, pinned = self.raw(index), [o for o in self.pinned(index) if o != ITEM_NONE]
            kept: tuple[tuple[int, int], ...] | None = tuple(pair for pair in pairs if pair[0] in raw)
            if (
                pg in doomed
                or self.is_merging(index)
                or self._against_the_rule(pool, pinned)
                or not self._list_members(pool).issuperset(pinned)
                or any(not self.reweights.get(osd) or not self.crush_weight(osd) for osd in pinned)
                or any(not self.reweights.get(to) or not self.crush_weight(to) for _, to in pairs)
            ):
                kept = None
            if kept != pairs:
                touched |= self.pin(pg, kept or None)
        return touched

    def is_merging(self, index: int) -> bool:
        """Whether the PG is about to be merged into its parent, or its child into it."""
        pool_id, seed = self._places[index]
        pool = self.pools[pool_id]
        pending = pool.pg_num if pool.pg_num_pending is None else pool.pg_num_pending
        return seed >= pending or seed in {find_parent(child) for child in range(pending, pool.pg_num)}

    def holding(self, osd: int) -> set[int]:
        """PGs for which CRUSH chooses this OSD."""
        touched: set[int] = set()
        for pool in self.pools.values():
            touched |= set(self._rows(pool, (self._raw[pool.id] == osd).any(axis=1)))
        return touched

    def same_domain(self, index: int, osd: int, members: Iterable[int]) -> bool:
        """Whether the OSD shares a failure domain of the PG's rule with one of `members`."""
        rule = self.crush.rules[self.pool(index).rule]
        domain = self._domain_of(next(step.type for step in rule.steps if step.op.startswith("choose")))
        return domain.get(osd) in {domain.get(member) for member in members if member != ITEM_NONE}

    def _pinned_pgs(self) -> set[int]:
        return {self.index[pg] for pg in self.upmaps if pg in self.index}

    def _number_pgs(self, pool: Pool) -> None:
        """Give each PG of the pool an index: those that were there before keep theirs."""
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
        """PGs that some override has turned away from where CRUSH with every OSD in would put them."""
        touched: set[int] = set()
        for pool in self.pools.values():
            touched |= set(self._rows(pool, (self._raw[pool.id] != self._home[pool.id]).any(axis=1)))
        return touched

    def _place_anew(self) -> None:
        choosers = self._list_choosers()
        for pool in self.pools.values():
            self._place_pool(pool, choosers)
        self._domains, self._members = {}, {}
        self._weights = {
            osd: weight
            for bucket in self.crush.buckets.values()
            for osd, weight in zip(bucket.items, bucket.weights, strict=True)
            if osd >= 0
        }

    def _list_choosers(self) -> tuple[Chooser, Chooser | None]:
        """One with every OSD in, and one with the overrides where they differ from that."""
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

    def _against_the_rule(self, pool: Pool, pinned: list[int]) -> bool:
        """No two members in one bucket of a chooseleaf's type, and no more buckets of a choose's type than it wants.
        Source: CrushWrapper::verify_upmap.
        """
        for step in self.crush.rules[pool.rule].steps:
            if not step.op.startswith("choose") or step.type == "osd":
                continue
            domain = self._domain_of(step.type)
            buckets = len({domain.get(osd, osd) for osd in pinned})
            most = step.num if step.num > 0 else pool.size + step.num
            if buckets < len(pinned) if step.op.startswith("chooseleaf") else buckets > most:
                return True
        return False

    def _list_members(self, pool: Pool) -> frozenset[int]:
        """OSDs under the buckets that the pool's rule takes. Source: CrushWrapper::get_rule_weight_osd_map."""
        if pool.rule not in self._members:
            found: set[int] = set()
            open_ = [step.item for step in self.crush.rules[pool.rule].steps if step.op == "take"]
            while open_:
                item = open_.pop()
                if item >= 0:
                    found.add(item)
                else:
                    open_ += self.crush.buckets[item].items
            self._members[pool.rule] = frozenset(found)
        return self._members[pool.rule]

    def _domain_of(self, kind: str) -> dict[int, int]:
        """OSD -> the bucket of a type above it."""
        if kind not in self._domains:
            parents = {item: b.id for b in self.crush.buckets.values() for item in b.items}
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
    """The PG that a PG was split from, and is merged into: its seed without the highest bit."""
    return seed & ~(1 << (seed.bit_length() - 1))


def fixed_reweight(weight: float) -> int:
    """An override as the mon stores it: 16.16, cut off."""
    return int(weight * FULL_WEIGHT)
