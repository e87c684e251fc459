"""The simulated OSD map: weights, pins, who is up; which PGs a change may touch and where they belong."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from actions.cluster.simulated.spec import ClusterSpec
from actions.cluster.view import Pool
from actions.crush.choose import FULL_WEIGHT, Chooser, Ints
from actions.crush.map import ITEM_NONE, CrushMap
from actions.crush.place import led_by_affinity, upmapped
from actions.crush.raw_sets import compute_raw_sets, find_placement_seeds
from actions.crush.reweigh import with_crush_weight, without_osd
from data.ids import OsdId, PgId, pg_id


class OsdMap:
    """Mutable; every change raises `epoch` and returns the PGs (as indices) whose place may have changed."""

    def __init__(self, spec: ClusterSpec) -> None:
        self.epoch = 1
        self.crush: CrushMap = spec.crush
        self.pools: dict[int, Pool] = {each.pool.id: each.pool for each in spec.pools}
        self.pgs: list[PgId] = []
        self._pool_of: list[Pool] = []
        self._first: dict[int, int] = {}
        for pool in self.pools.values():
            self._first[pool.id] = len(self.pgs)
            self.pgs += [pg_id(pool.id, seed) for seed in range(pool.pg_num)]
            self._pool_of += [pool] * pool.pg_num
        self.index = {pg: index for index, pg in enumerate(self.pgs)}
        self.reweights: dict[int, int] = {int(osd.id): FULL_WEIGHT for osd in spec.osds}
        self.old_weights: dict[int, int] = {}
        """Overrides in 16.16 that OSDs which were marked out get again when they come up. Source:
        OSDMonitor::tick, OSDMonitor::prepare_boot, OSDMap::apply_incremental."""
        self.affinities: dict[OsdId, float] = {}
        self.up: set[int] = {int(osd.id) for osd in spec.osds}
        self.upmaps: dict[PgId, tuple[tuple[int, int], ...]] = dict(spec.upmap_items)
        self.flags: frozenset[str] = frozenset()
        self._domains: dict[str, dict[int, int]] = {}
        self._weights: dict[int, int] = {}
        self._home: dict[int, Ints] = {}
        self._raw: dict[int, Ints] = {}
        self._place_anew()

    def pool(self, index: int) -> Pool:
        return self._pool_of[index]

    def raw(self, index: int) -> list[int]:
        """CRUSH's own choice."""
        pool = self._pool_of[index]
        row: list[int] = self._raw[pool.id][index - self._first[pool.id]].tolist()
        return row

    def pinned(self, index: int) -> list[int]:
        """CRUSH's choice with the PG's pins applied, whoever is down."""
        raw, pairs = self.raw(index), self.upmaps.get(self.pgs[index])
        return upmapped(raw, pairs, self.reweights) if pairs else raw

    def place(self, index: int) -> tuple[int, ...]:
        """The PG's `up` set now."""
        pinned = self.pinned(index)
        if self._pool_of[index].erasure:
            return tuple(osd if osd in self.up else ITEM_NONE for osd in pinned)
        placed = tuple(osd for osd in pinned if osd != ITEM_NONE and osd in self.up)
        if not self.affinities:
            return placed
        pool = self._pool_of[index]
        seed = np.array([index - self._first[pool.id]], dtype=np.int64)
        return led_by_affinity(placed, int(find_placement_seeds(pool, seed)[0]), self.affinities)

    def crush_weight(self, osd: int) -> int:
        """16.16 weight of the OSD in its bucket; 0 where it is in none."""
        return self._weights.get(osd, 0)

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
        return {self.index[pg]}

    def clean_pins(self, doomed: Iterable[PgId] = ()) -> set[int]:
        """Drop pins that are void, as the mon does after every map change; those in `doomed` go in any case.

        A PG's whole list goes when its set would use an OSD that is out or has no CRUSH weight, or would
        not be one of the rule's; a single pair goes when CRUSH no longer chooses its source. Source:
        OSDMap::check_pg_upmaps.
        """
        touched: set[int] = set()
        doomed = set(doomed)
        for pg, pairs in list(self.upmaps.items()):
            index = self.index[pg]
            raw, pinned = self.raw(index), [o for o in self.pinned(index) if o != ITEM_NONE]
            kept: tuple[tuple[int, int], ...] | None = tuple(pair for pair in pairs if pair[0] in raw)
            if (
                pg in doomed
                or self._against_the_rule(self._pool_of[index], pinned)
                or any(not self.reweights.get(osd) or not self.crush_weight(osd) for osd in pinned)
                or any(not self.reweights.get(to) or not self.crush_weight(to) for _, to in pairs)
            ):
                kept = None
            if kept != pairs:
                touched |= self.pin(pg, kept or None)
        return touched

    def holding(self, osd: int) -> set[int]:
        """PGs for which CRUSH chooses this OSD."""
        touched: set[int] = set()
        for pool in self.pools.values():
            touched |= set(self._rows(pool, (self._raw[pool.id] == osd).any(axis=1)))
        return touched

    def same_domain(self, index: int, osd: int, members: Iterable[int]) -> bool:
        """Whether the OSD shares a failure domain of the PG's rule with one of `members`."""
        rule = self.crush.rules[self._pool_of[index].rule]
        domain = self._domain_of(next(step.type for step in rule.steps if step.op.startswith("choose")))
        return domain.get(osd) in {domain.get(member) for member in members if member != ITEM_NONE}

    def _pinned_pgs(self) -> set[int]:
        return {self.index[pg] for pg in self.upmaps}

    def _rows(self, pool: Pool, mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[int]:
        found: list[int] = (np.flatnonzero(mask) + self._first[pool.id]).tolist()
        return found

    def _away(self) -> set[int]:
        """PGs that some override has turned away from where CRUSH with every OSD in would put them."""
        touched: set[int] = set()
        for pool in self.pools.values():
            touched |= set(self._rows(pool, (self._raw[pool.id] != self._home[pool.id]).any(axis=1)))
        return touched

    def _place_anew(self) -> None:
        whole = dict.fromkeys(self.reweights, FULL_WEIGHT)
        at_home, now = Chooser(self.crush, whole), Chooser(self.crush, self.reweights)
        for pool in self.pools.values():
            seeds = np.arange(pool.pg_num, dtype=np.int64)
            home = compute_raw_sets(at_home, self.crush, pool, seeds)
            self._home[pool.id] = home
            # Placing 65,536 PGs takes half a minute: once is enough while no override turns any away.
            same = self.reweights == whole
            self._raw[pool.id] = home.copy() if same else compute_raw_sets(now, self.crush, pool, seeds)
        self._domains = {}
        self._weights = {
            osd: weight
            for bucket in self.crush.buckets.values()
            for osd, weight in zip(bucket.items, bucket.weights, strict=True)
            if osd >= 0
        }

    def _replace_rows(self, touched: set[int]) -> None:
        chooser = Chooser(self.crush, self.reweights)
        for pool in self.pools.values():
            first = self._first[pool.id]
            seeds = np.array([i - first for i in sorted(touched) if self._pool_of[i] is pool], dtype=np.int64)
            if len(seeds):
                self._raw[pool.id][seeds] = compute_raw_sets(chooser, self.crush, pool, seeds)

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


def fixed_reweight(weight: float) -> int:
    """An override as the mon stores it: 16.16, cut off."""
    return int(weight * FULL_WEIGHT)
