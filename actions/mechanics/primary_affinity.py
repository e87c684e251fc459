"""Steps of the primary affinity: an OSD stops or starts again to be primary, a few PGs at a time; no data
moves.

An OSD is passed over as a PG's primary if the PG's draw for it is not below its affinity. The PGs that a step
changes are therefore known beforehand. Source: OSDMap::_apply_primary_affinity.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from predrain.actions.cluster.cluster_port import PrimaryAffinity
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.osd_layout import find_osd_layout
from predrain.actions.cluster.pg_index import find_pg_index
from predrain.actions.core.in_flight import Allowance
from predrain.actions.crush.crush_hash import hash_two_words
from predrain.actions.crush.crush_map import ITEM_NONE
from predrain.actions.crush.crush_rules import FULL_WEIGHT, CannotPlace
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.crush.raw_sets import find_placement_seeds
from predrain.actions.mechanics.override_reweight import choose_higher_weight, choose_lower_weight
from predrain.actions.mechanics.step_batch import CommandBatch
from predrain.data.drain import Drain
from predrain.data.ids import OsdId, PgId, pg_seed
from predrain.data.messages import format_count

_Draws = Mapping[PgId, Mapping[int, int]]


def build_affinity_step(view: ClusterView, osd: OsdId, goal: float, allowance: Allowance) -> CommandBatch:
    """Return the next affinity towards `goal`, up or down, that changes the primary of no more PGs than may
    peer.
    """
    now = view.osds[osd].primary_affinity
    if round(now * FULL_WEIGHT) == round(goal * FULL_WEIGHT):
        return CommandBatch(waits_for=f"primary affinity of osd.{osd} is {goal:g}")
    if allowance.peering < 1:
        return CommandBatch(waits_for="PGs still peer")
    named = find_pg_index(view.pgs).list_pgs(osd)
    if any(osd in pg.up and not allowance.led.isdisjoint(pg.up) for pg in named if allowance.led):
        # The primary depends on both affinities, and each step was computed with the other's old value.
        return CommandBatch(
            waits_for="another drain's step in this poll changes the primaries of the same PGs"
        )
    try:
        drawn = at_stake(view, osd)
    except CannotPlace:
        if goal < now:
            raise
        drawn = _draw_all(view, osd)  # giving back needs no placement: at most these PGs change their primary
    step = choose_lower_weight if goal < now else choose_higher_weight
    affinity = step(drawn, now, goal, allowance.peering)
    low, high = sorted((round(now * FULL_WEIGHT), round(affinity * FULL_WEIGHT)))
    pgs = frozenset(pg for pg, draw in drawn.items() if low <= draw < high)
    if pgs & allowance.taken or (len(pgs) > allowance.peering and allowance.taken):
        return CommandBatch(waits_for="another drain's step on the same PGs")
    allowance.reserve_peering(pgs)
    allowance.led.add(osd)
    decided = f"primary affinity of osd.{osd} {now:.4f} > {affinity:.4f}, {format_count(len(pgs), 'PG')} led by others"
    if goal > now:
        again = f"{format_count(len(pgs), 'PG')} led by it again"
        decided = f"primary affinity of osd.{osd} {now:.4f} > {affinity:.4f}, {again}"
    return CommandBatch((PrimaryAffinity(osd, affinity),), pgs, decided)


def count_progress(view: ClusterView, drain: Drain) -> Drain:
    """Return a quarantine with the number of PGs whose primary its OSDs no longer are."""
    if drain.plan is None or not view.statistics_known or not drain.plan.affected_pgs:
        return drain
    leading = {pg for osd in drain.osds if osd in view.osds for pg in find_primary_pgs(view, osd)}
    gone = sum(1 for pg in drain.plan.affected_pgs if pg not in leading)
    progress = replace(drain.progress, planned_pgs=len(drain.plan.affected_pgs), moved_pgs=gone)
    return drain if progress == drain.progress else replace(drain, progress=progress)


def find_primary_pgs(view: ClusterView, osd: OsdId) -> frozenset[PgId]:
    """Return the PGs whose primary is the OSD, by the map."""
    held = [pg.id for pg in find_pg_index(view.pgs).list_pgs(osd) if osd in pg.up]
    leads = compute_pg_primaries(view, held, {osd: view.osds[osd].primary_affinity})
    return frozenset(
        pg
        for pg in held
        if (leads[pg] if view.pools[view.pgs[pg].pool].erasure else view.pgs[pg].up[0]) == osd
    )


def at_stake(view: ClusterView, osd: OsdId) -> dict[PgId, int]:
    """Return the PGs whose primary depends on the OSD's affinity, each with the draw at which it changes."""
    held = [pg.id for pg in find_pg_index(view.pgs).list_pgs(osd) if osd in pg.up]
    always, never = compute_pg_primaries(view, held, {osd: 1.0}), compute_pg_primaries(view, held, {osd: 0.0})
    as_is = compute_pg_primaries(view, held, {})
    draws = _draw_all(view, osd)
    return {pg: draws[pg] for pg in held if always[pg] != never[pg] or _unlike_the_map(view, pg, as_is[pg])}


def _draw_all(view: ClusterView, osd: OsdId) -> dict[PgId, int]:
    """Return every PG that has a copy on the OSD, with its draw for the OSD."""
    held = [pg.id for pg in find_pg_index(view.pgs).list_pgs(osd) if osd in pg.up]
    return {
        pg: found[osd] for pg, found in _compute_affinity_draws(view, dict.fromkeys(held, (osd,))).items()
    }


def compute_pg_primaries(
    view: ClusterView, pgs: Collection[PgId], affinities: Mapping[OsdId, float]
) -> dict[PgId, int]:
    """Compute the primary of each PG with other primary affinities than the view's; ITEM_NONE if `up` is
    empty.
    """
    if not pgs:
        return {}
    layout = find_osd_layout(view.osds)
    ups = place_pgs(view.crush, view.pools, layout.overrides, view.upmap_items, layout.down, pgs)
    limits = {int(osd.id): int(osd.primary_affinity * FULL_WEIGHT) for osd in view.osds.values()}
    limits.update({int(osd): int(affinity * FULL_WEIGHT) for osd, affinity in affinities.items()})
    doubtful = {
        pg: [osd for osd in up if limits.get(osd, FULL_WEIGHT) < FULL_WEIGHT] for pg, up in ups.items()
    }
    draws = _compute_affinity_draws(view, {pg: members for pg, members in doubtful.items() if members})
    return {pg: _choose_primary(up, limits, draws.get(pg, {})) for pg, up in ups.items()}


def _choose_primary(up: Sequence[int], limits: Mapping[int, int], draws: Mapping[int, int]) -> int:
    members = [osd for osd in up if osd != ITEM_NONE]
    willing = (osd for osd in members if osd not in draws or draws[osd] < limits[osd])
    return next(willing, members[0] if members else ITEM_NONE)


def _compute_affinity_draws(view: ClusterView, asked: Mapping[PgId, Sequence[int]]) -> _Draws:
    """Compute each PG's draw in [0, 65535] against the affinity of each OSD asked for."""
    rows = [(pg, osd) for pg, members in asked.items() for osd in members]
    seeds = {pg: pg_seed(pg) for pg in asked}
    places: dict[PgId, int] = {}
    for pool in {pool for pool, _ in seeds.values()}:
        mine = [pg for pg, (its, _) in seeds.items() if its == pool]
        numbers = find_placement_seeds(
            view.pools[pool], np.array([seeds[pg][1] for pg in mine], dtype=np.int64)
        )
        places.update(zip(mine, numbers.tolist(), strict=True))
    hashed = hash_two_words(
        np.array([places[pg] for pg, _ in rows], dtype=np.uint32),
        np.array([osd for _, osd in rows], dtype=np.uint32),
    )
    found: dict[PgId, dict[int, int]] = {}
    for (pg, osd), drawn in zip(rows, (hashed >> np.uint32(16)).tolist(), strict=True):
        found.setdefault(pg, {})[osd] = drawn
    return found


def _unlike_the_map(view: ClusterView, pg: PgId, computed: int) -> bool:
    """Return whether a replicated PG's primary differs from the computed one (`pg_upmap_primaries`, Reef and
    later).

    Such a PG counts as dependent on the affinity.
    """
    found = view.pgs[pg]
    return not view.pools[found.pool].erasure and bool(found.up) and found.up[0] != computed
