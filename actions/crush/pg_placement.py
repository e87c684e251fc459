"""The place of every PG: pools and CRUSH, then upmap items, then down OSDs, as Ceph's OSDMap computes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from predrain.actions.crush.crush_hash import hash_two_words
from predrain.actions.crush.crush_map import ITEM_NONE, CrushMap
from predrain.actions.crush.crush_rules import FULL_WEIGHT
from predrain.actions.crush.pool import Pool
from predrain.actions.crush.raw_sets import (
    FixedOverrides,
    RawSets,
    find_placement_seeds,
    fix_overrides,
)
from predrain.data.identity_memo import remember_results
from predrain.data.ids import OsdId, PgId, pg_id, pg_seed

_RAW_SETS = RawSets(limit=24)

UpmapItems = Mapping[PgId, tuple[tuple[int, int], ...]]


def place_pgs(
    crush: CrushMap,
    pools: Mapping[int, Pool],
    reweights: Mapping[OsdId, float],
    upmap_items: UpmapItems,
    down: frozenset[OsdId] = frozenset(),
    only: Collection[PgId] | None = None,
    affinities: Mapping[OsdId, float] | None = None,
) -> dict[PgId, tuple[int, ...]]:
    """Return the `up` set of every PG (or of those in `only`).

    reweights: override of every OSD that exists, in [0, 1]; an OSD that is missing is out. The mapping must not be
    changed afterwards. affinities: primary affinity where it is not 1.

    Replicated sets leave out members that cannot be placed or are down; erasure-coded sets keep the position
    as ITEM_NONE. Raises CannotPlace on a map with buckets other than straw2, unknown steps or a missing rule.
    """
    overrides = _fix_overrides(reweights)
    fixed = overrides.weights
    lessened = {osd: a for osd, a in (affinities or {}).items() if a < 1.0}
    wanted: dict[int, list[int]] = {}
    if only is None:
        wanted = {pool.id: list(range(pool.pg_num)) for pool in pools.values()}
    else:
        for pg in only:
            pool_id, seed = pg_seed(pg)
            wanted.setdefault(pool_id, []).append(seed)
    mapping: dict[PgId, tuple[int, ...]] = {}
    for pool_id, seeds in wanted.items():
        pool = pools[pool_id]
        rows = np.array(seeds, dtype=np.int64)
        draws = find_placement_seeds(pool, rows).tolist() if lessened else seeds
        found = _RAW_SETS.find(crush, overrides, pool, rows)
        for seed, draw, raw in zip(seeds, draws, found.tolist(), strict=True):
            pg = pg_id(pool_id, seed)
            pairs = upmap_items.get(pg)
            up = _build_up_set(
                apply_effective_upmaps(raw, pairs, fixed) if pairs else raw, down, pool.erasure
            )
            if lessened and not pool.erasure and not lessened.keys().isdisjoint(up):
                up = led_by_affinity(up, draw, lessened)
            mapping[pg] = up
    return mapping


@remember_results(limit=16)
def _fix_overrides(reweights: Mapping[OsdId, float]) -> FixedOverrides:
    """Return overrides in [0, 1] as the map stores them."""
    return fix_overrides({int(osd): round(weight * FULL_WEIGHT) for osd, weight in reweights.items()})


def apply_effective_upmaps(
    raw: list[int], pairs: tuple[tuple[int, int], ...], reweights: Mapping[int, int]
) -> list[int]:
    """Return `raw` with upmap pairs applied in turn; a pair whose target is out or already a member has no
    effect.
    """
    mapped = list(raw)
    for source, target in pairs:
        if target in mapped or source not in mapped:
            continue
        if target != ITEM_NONE and reweights.get(target, 0) == 0:
            continue
        mapped[mapped.index(source)] = target
    return mapped


def _build_up_set(raw: list[int], down: frozenset[OsdId], erasure: bool) -> tuple[int, ...]:
    if erasure:
        return tuple(ITEM_NONE if osd in down else osd for osd in raw) if down else tuple(raw)
    return tuple(osd for osd in raw if osd != ITEM_NONE and osd not in down)


def led_by_affinity(up: tuple[int, ...], seed: int, affinities: Mapping[OsdId, float]) -> tuple[int, ...]:
    """Return a replicated set with its primary chosen by primary affinity, as OSDMap::_apply_primary_affinity
    does.

    seed: the PG's placement seed. An OSD that `affinities` does not name has affinity 1.
    """
    for position, osd in enumerate(up):
        affinity = affinities.get(OsdId(osd), 1.0)
        if affinity >= 1.0 or _affinity_draw(seed, osd) < int(affinity * FULL_WEIGHT):
            return (osd, *up[:position], *up[position + 1 :])
    return up


def _affinity_draw(seed: int, osd: int) -> int:
    return int(hash_two_words(np.array([seed], np.uint32), np.array([osd], np.uint32))[0]) >> 16
