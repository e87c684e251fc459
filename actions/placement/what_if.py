"""What the map would make of a change, computed beforehand; and whether the map under a plan is still the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from predrain.actions.cluster.view import ClusterView
from predrain.actions.crush.choose import CannotPlace
from predrain.actions.crush.map import CrushMap
from predrain.actions.crush.place import place
from predrain.actions.crush.reweigh import find_bounds, with_crush_weight
from predrain.actions.crush.stirred import KnownMembers, stirred
from predrain.data.drain import Drain
from predrain.data.ids import OsdId, PgId

Placement = Mapping[PgId, tuple[int, ...]]

_BEFORE_LUMINOUS = frozenset(
    {
        *("argonaut", "bobtail", "cuttlefish", "dumpling", "emperor", "firefly", "giant", "hammer"),
        *("infernalis", "jewel", "kraken"),
    }
)


def placed(
    view: ClusterView,
    out: Collection[OsdId] = (),
    only: Collection[PgId] | None = None,
    *,
    pinned: bool = True,
    weights: Mapping[OsdId, float] | None = None,
    crush: CrushMap | None = None,
) -> dict[PgId, tuple[int, ...]]:
    """`up` of `only` (None: of every PG) as the view's map would make it with `out` at override 0.

    weights: other overrides in force. crush: another tree. pinned=False: what CRUSH itself says, before upmaps,
    primary affinity and OSDs that are down.
    """
    if only is not None and not only:
        return {}
    reweights = {osd.id: osd.reweight for osd in view.osds.values()}
    reweights.update(weights or {})
    reweights.update(dict.fromkeys(out, 0.0))
    tree = crush if crush is not None else view.crush
    if not pinned:
        return place(tree, view.pools, reweights, {}, frozenset(), only)
    down = frozenset(osd.id for osd in view.osds.values() if not osd.up)
    affinities = {osd.id: osd.primary_affinity for osd in view.osds.values() if osd.primary_affinity < 1.0}
    return place(tree, view.pools, reweights, view.upmap_items, down, only, affinities)


def compute_present_up(view: ClusterView, pgs: Collection[PgId]) -> Placement:
    """`up` of `pgs` by the view's own map, which may be newer than what the PGs last reported; their reports where the
    map cannot be computed. A step changes a PG if its `up` after the step differs from this one.
    """
    try:
        return placed(view, (), pgs)
    except CannotPlace:
        return {pg: view.pgs[pg].up for pg in pgs}


def weighed(view: ClusterView, weights: Mapping[OsdId, float]) -> CrushMap:
    """The view's CRUSH map with other weights of some OSDs."""
    crush = view.crush
    for osd, weight in weights.items():
        crush = with_crush_weight(crush, osd, weight)
    return crush


def stirred_by(
    view: ClusterView,
    osds: Collection[OsdId],
    highest: Mapping[OsdId, float],
    restless: Collection[PgId] | None = None,
) -> frozenset[PgId]:
    """PGs of the view that may move while the CRUSH weights of `osds` go between `highest` and 0, either way.

    restless: PGs that are not at rest (`Survey.restless`). The `up` of every other PG is taken for what the map says,
    which saves most of the work while no weight is above that of the view. None: no `up` is relied on.
    """
    top = {osd: max(view.osds[osd].crush_weight, highest.get(osd, 0.0)) for osd in osds}
    reweights = {osd.id: osd.reweight for osd in view.osds.values()}
    lowest, most = weighed(view, dict.fromkeys(osds, 0.0)), weighed(view, top)
    known = None
    if view.crush.choose_args:  # their own weights may lie above those of the way, at some positions
        lowest, most = find_bounds([view.crush, most, lowest])
    elif restless is not None and most == view.crush and not view.has_full_upmaps:
        down = frozenset(osd.id for osd in view.osds.values() if not osd.up)
        known = KnownMembers(_list_members(view, restless), down)
    return stirred(most, lowest, view.pools, reweights, known) & view.pgs.keys()


def _list_members(view: ClusterView, restless: Collection[PgId]) -> dict[PgId, tuple[int, ...]]:
    """OSDs among which CRUSH's own choice is for each PG at rest: its `up`, and what its pairs may have replaced."""
    found = {id_: pg.up for id_, pg in view.pgs.items() if id_ not in restless}
    for id_, pairs in view.upmap_items.items():
        if id_ in found:
            found[id_] = (*found[id_], *(source for source, _ in pairs))
    return found


def can_upmap(view: ClusterView) -> bool:
    """Whether clients and map allow `pg-upmap-items` (never set by us)."""
    return not why_no_upmap(view)


def why_no_upmap(view: ClusterView) -> str:
    """What forbids `pg-upmap-items`; empty when nothing does."""
    if view.has_full_upmaps:
        return "full pg_upmap entries stand"
    if view.require_min_compat_client in _BEFORE_LUMINOUS:
        return f"require_min_compat_client is {view.require_min_compat_client}"
    return ""


def why_no_crush_weight(view: ClusterView) -> str:
    """What forbids a change of CRUSH weights, as a sentence without its end; empty when nothing does."""
    if not view.crush.choose_args:
        return ""
    return (
        "The CRUSH map has weight-sets (choose_args), and a change of a CRUSH weight also overwrites weights in them, "
        "which predrain does not give back"
    )


def fingerprint(view: ClusterView, drain: Drain, draining: frozenset[OsdId]) -> int:
    """Changes whenever the map under a plan does, except by what drains themselves set."""
    leaving = draining | set(drain.osds)
    osds = tuple(
        (
            osd.id,
            osd.up,
            0.0 if osd.id in leaving else osd.reweight,
            0.0 if osd.id in leaving else osd.crush_weight,
        )
        for osd in view.osds.values()
    )
    pools = tuple((pool.id, pool.pg_num, pool.pgp_num, pool.size, pool.rule) for pool in view.pools.values())
    sets = tuple((key, *args.items()) for key, args in view.crush.choose_args.items())
    return hash((osds, pools, leaving, view.has_full_upmaps, sets, can_upmap(view)))
