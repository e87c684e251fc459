"""Computes the effect of a change on the map beforehand, and detects changes of the map under a plan.

The mon drops an upmap item that would put two shards of a PG into one failure domain. It does so seconds after the PG
has peered with the item, and another OSD than computed is filled. Such items are therefore found beforehand
(`find_void_upmaps`) and removed before the weight change that makes them void.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.osd_layout import OsdLayout, find_osd_layout
from predrain.actions.cluster.pg_index import find_pg_index
from predrain.actions.crush.affected_pgs import KnownMembers, find_affected_pgs
from predrain.actions.crush.crush_map import CrushMap
from predrain.actions.crush.crush_reweight import find_bounds, with_crush_weight
from predrain.actions.crush.crush_rules import CannotPlace
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.crush.upmap_check import find_upmap_check
from predrain.actions.placement.failure_domains import Pairs, apply_upmap_pairs
from predrain.data.drain import Drain
from predrain.data.ids import OsdId, PgId

Placement = Mapping[PgId, tuple[int, ...]]

_BEFORE_LUMINOUS = frozenset(
    {
        *("argonaut", "bobtail", "cuttlefish", "dumpling", "emperor", "firefly", "giant", "hammer"),
        *("infernalis", "jewel", "kraken"),
    }
)


def compute_up_sets(
    view: ClusterView,
    out: Collection[OsdId] = (),
    only: Collection[PgId] | None = None,
    *,
    with_upmaps: bool = True,
    weights: Mapping[OsdId, float] | None = None,
    crush: CrushMap | None = None,
    all_up: bool = False,
) -> dict[PgId, tuple[int, ...]]:
    """Compute `up` of `only` (None: of every PG) on the view's map with the OSDs `out` at override 0.

    `weights`: other overrides. `crush`: another tree. `pinned=False`: CRUSH's raw choice, before upmap items,
    primary affinity and down OSDs. `all_up`: as if every OSD that is down were up. Raises CannotPlace.
    """
    if only is not None and not only:
        return {}
    layout = find_osd_layout(view.osds)
    reweights = layout.overrides
    if weights or out:
        changes = {**(weights or {}), **dict.fromkeys(out, 0.0)}
        reweights = _change_overrides(layout, frozenset(changes.items()))
    tree = crush if crush is not None else view.crush
    if not with_upmaps:
        return place_pgs(tree, view.pools, reweights, {}, frozenset(), only)
    down = frozenset[OsdId]() if all_up else layout.down
    return place_pgs(tree, view.pools, reweights, view.upmap_items, down, only, layout.affinities)


@lru_cache(maxsize=16)
def _change_overrides(layout: OsdLayout, changes: frozenset[tuple[OsdId, float]]) -> Mapping[OsdId, float]:
    """Return the overrides of all OSDs after some have changed. Equal changes give the identical mapping."""
    return {**layout.overrides, **dict(changes)}


def compute_present_up(view: ClusterView, pgs: Collection[PgId]) -> Placement:
    """Compute `up` of `pgs` by the view's map, which may be newer than the PGs' reports.

    If the map cannot be computed, the result is `up` as reported. A step changes a PG if its `up` after the
    step differs from this one.
    """
    try:
        return compute_up_sets(view, (), pgs)
    except CannotPlace:
        return {pg: view.pgs[pg].up for pg in pgs}


def apply_crush_weights(view: ClusterView, weights: Mapping[OsdId, float]) -> CrushMap:
    """Return the view's CRUSH map with other weights of some OSDs."""
    crush = view.crush
    for osd, weight in weights.items():
        crush = with_crush_weight(crush, osd, weight)
    return crush


def find_weight_affected_pgs(
    view: ClusterView,
    osds: Collection[OsdId],
    highest: Mapping[OsdId, float],
    unclean: Collection[PgId] | None = None,
) -> frozenset[PgId]:
    """Return PGs of the view that may move while the CRUSH weights of `osds` go between `highest` and 0,
    either way.

    `unclean`: PGs that are not at rest (`Survey.unclean`). The `up` of every other PG is taken as the map's
    result, which saves most of the work as long as no weight is above that of the view. None: no `up` is
    used. Raises CannotPlace.
    """
    raised = {osd: weight for osd in osds if (weight := highest.get(osd, 0.0)) > view.osds[osd].crush_weight}
    layout = find_osd_layout(view.osds)
    # The bounds include the map as it stands: the mon sets each weight above the OSD to the sum of its items.
    lowest, most = find_bounds(
        [view.crush, apply_crush_weights(view, raised), apply_crush_weights(view, dict.fromkeys(osds, 0.0))]
    )
    known = None
    if unclean is not None and most == view.crush and not view.has_full_upmaps:
        members = _CleanMembers(view, unclean)
        known = KnownMembers(members, layout.down, members.find_pgs)
    return find_affected_pgs(most, lowest, view.pools, layout.overrides, known) & view.pgs.keys()


class _CleanMembers(Mapping[PgId, tuple[int, ...]]):
    """For each PG at rest, OSDs that include CRUSH's own choice: its `up` and the sources of its upmap pairs."""

    def __init__(self, view: ClusterView, unclean: Collection[PgId]) -> None:
        self._view, self._unclean = view, frozenset(unclean) & view.pgs.keys()

    def __getitem__(self, pg: PgId) -> tuple[int, ...]:
        if pg in self._unclean:
            raise KeyError(pg)
        sources = (source for source, _ in self._view.upmap_items.get(pg, ()))
        return (*self._view.pgs[pg].up, *sources)

    def __contains__(self, pg: object) -> bool:
        return pg in self._view.pgs and pg not in self._unclean

    def __iter__(self) -> Iterator[PgId]:
        return (pg for pg in self._view.pgs if pg not in self._unclean)

    def __len__(self) -> int:
        return len(self._view.pgs) - len(self._unclean)

    def find_pgs(self, osds: Collection[int]) -> set[PgId]:
        """Return the PGs that have any of `osds`, and perhaps some that do not."""
        index, sources = find_pg_index(self._view.pgs), frozenset(osds)
        named = {pg.id for osd in osds for pg in index.list_pgs(osd)}
        mapped = {
            pg
            for pg, pairs in self._view.upmap_items.items()
            if not sources.isdisjoint(source for source, _ in pairs)
        }
        return named | mapped


def can_upmap(view: ClusterView) -> bool:
    """Return whether clients and map allow `pg-upmap-items` (predrain never changes that)."""
    return not why_no_upmap(view)


def why_no_upmap(view: ClusterView) -> str:
    """Return what forbids `pg-upmap-items`; empty if nothing does."""
    if view.has_full_upmaps:
        return "full pg_upmap entries stand"
    if view.require_min_compat_client in _BEFORE_LUMINOUS:
        return f"require_min_compat_client is {view.require_min_compat_client}"
    return ""


def has_weight_sets(view: ClusterView) -> bool:
    """Return whether the map has weight-sets (`data.messages.WEIGHT_SETS`), so that CRUSH weights are not changed."""
    return bool(view.crush.choose_args)


def compute_map_fingerprint(view: ClusterView, drain: Drain, draining: frozenset[OsdId]) -> int:
    """Return a number that changes whenever the map under a plan does, except by what drains themselves set."""
    leaving = draining | set(drain.osds)
    osds = _hash_weights(find_osd_layout(view.osds), leaving)
    pools = tuple((pool.id, pool.pg_num, pool.pgp_num, pool.size, pool.rule) for pool in view.pools.values())
    sets = tuple((key, *args.items()) for key, args in view.crush.choose_args.items())
    return hash((osds, pools, leaving, view.has_full_upmaps, sets, can_upmap(view)))


@lru_cache(maxsize=64)
def _hash_weights(layout: OsdLayout, leaving: frozenset[OsdId]) -> int:
    """Return a number that changes whenever an OSD goes up or down, or one outside `leaving` gets another weight."""
    return hash(tuple((*row[:2], 0.0, 0.0) if row[0] in leaving else row for row in layout.weights))


def find_void_upmaps(view: ClusterView, after: Placement) -> frozenset[PgId]:
    """Return the PGs of `after` whose present upmap items the mon would drop. Source:
    CrushWrapper::verify_upmap.
    """
    return _find_rejected_upmaps(view, {pg: up for pg, up in after.items() if view.upmap_items.get(pg)})


def find_kept_pairs(view: ClusterView, upmaps: Mapping[PgId, Pairs]) -> dict[PgId, Pairs]:
    """Return the pairs of `upmaps` that the mon would keep for each PG if they were set now.

    If the map cannot be computed, all pairs are returned. The mon drops a pair if CRUSH does not choose its
    source, or if its target is out. It drops all pairs of a PG if the set would break the rule, or would have
    a member without CRUSH weight. Source: OSDMap::check_pg_upmaps; recorded on Pacific.
    """
    asked = {pg: pairs for pg, pairs in upmaps.items() if pairs and pg in view.pgs}
    try:
        raw = compute_up_sets(view, (), asked, with_upmaps=False)
    except CannotPlace:
        return dict(upmaps)
    layout = find_osd_layout(view.osds)
    kept = dict(upmaps)
    standing: dict[PgId, Pairs] = {}
    for pg, pairs in asked.items():
        standing[pg] = tuple(pair for pair in pairs if layout.overrides.get(OsdId(pair[1]), 0.0) > 0)
        kept[pg] = tuple(pair for pair in standing[pg] if pair[0] in raw[pg])
    after = {pg: apply_upmap_pairs(raw[pg], pairs) for pg, pairs in standing.items()}
    against = _find_rejected_upmaps(view, after)
    for pg, members in after.items():
        if pg in against or not layout.weightless.isdisjoint(members):
            kept[pg] = ()
    return kept


def is_choice_changed(
    view: ClusterView,
    weights: Mapping[OsdId, float],
    crush_weights: Mapping[OsdId, float],
    pgs: Collection[PgId],
) -> bool:
    """Return whether CRUSH's own choice for any of `pgs` differs with other overrides and CRUSH weights of OSDs.

    An upmap item for such a PG that was computed with the present weights is no longer right. Raises CannotPlace.
    """
    known = [pg for pg in pgs if pg in view.pgs]
    if not known or not (weights or crush_weights):
        return False
    before = compute_up_sets(view, (), known, with_upmaps=False)
    tree = apply_crush_weights(view, crush_weights)
    return before != compute_up_sets(view, (), known, with_upmaps=False, weights=weights, crush=tree)


def find_dropped_upmaps(
    view: ClusterView,
    weights: Mapping[OsdId, float],
    crush_weights: Mapping[OsdId, float],
    affected: Collection[PgId] = (),
) -> frozenset[PgId]:
    """Return the PGs with upmap items of which the mon drops pairs once OSDs have other weights.

    `weights`: overrides. `affected`: PGs whose choice the CRUSH weights can change at all (`Plan.affected_pgs`); if not
    given, every PG with upmap items is computed. The `up` of a returned PG need not change: CRUSH may choose the
    target of the pair by itself, in place of the source. Pairs that the mon drops at the present weights too are
    not counted. If the map cannot be computed, no PG is returned.
    """
    if not weights and not crush_weights:
        return frozenset()
    upmaps = {pg: pairs for pg, pairs in view.upmap_items.items() if pg in view.pgs}
    if crush_weights and affected:
        upmaps = {pg: upmaps[pg] for pg in affected if pg in upmaps}
    if not crush_weights:  # an override changes the choice of those PGs alone for which CRUSH chooses the OSD
        upmaps = {
            pg: pairs
            for pg, pairs in upmaps.items()
            if not weights.keys().isdisjoint((*view.pgs[pg].up, *(source for source, _ in pairs)))
        }
    osds = dict(view.osds)
    for osd in weights.keys() & osds.keys():
        osds[osd] = replace(osds[osd], reweight=weights[osd])
    for osd in crush_weights.keys() & osds.keys():
        osds[osd] = replace(osds[osd], crush_weight=crush_weights[osd])
    then = replace(view, osds=osds, crush=apply_crush_weights(view, crush_weights))
    kept = find_kept_pairs(then, upmaps)
    fewer = {pg: pairs for pg, pairs in upmaps.items() if kept[pg] != pairs}
    now = find_kept_pairs(view, fewer)
    return frozenset(pg for pg in fewer if kept[pg] != now[pg])


def _find_rejected_upmaps(view: ClusterView, after: Placement) -> frozenset[PgId]:
    checks = {
        pool: find_upmap_check(view.crush, view.pools[pool]) for pool in {view.pgs[pg].pool for pg in after}
    }
    return frozenset(pg for pg, up in after.items() if not checks[view.pgs[pg].pool].keeps_upmap(up))
