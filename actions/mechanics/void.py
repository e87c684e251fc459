"""Pins that the mon drops: beside what CRUSH chooses they would put two shards of a PG into one failure domain.

It drops them seconds after the PG has peered so, and another OSD than was computed fills. So they go before a weight
that makes them void.
"""

from __future__ import annotations

from collections.abc import Mapping

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import Pairs
from predrain.actions.crush.choose import CannotPlace
from predrain.actions.placement.failure_domains import applied, find_upmap_check
from predrain.actions.placement.what_if import Placement, placed
from predrain.data.ids import PgId


def void(view: ClusterView, after: Placement) -> frozenset[PgId]:
    """PGs of `after` whose standing pins the mon would drop. Source: CrushWrapper::verify_upmap."""
    return _against(view, {pg: up for pg, up in after.items() if view.upmap_items.get(pg)})


def find_kept_pairs(view: ClusterView, pins: Mapping[PgId, Pairs]) -> dict[PgId, Pairs]:
    """What the mon would keep of each PG's `pins`, set now. All of them where the map cannot be computed.

    A pair goes when CRUSH does not choose its source; all pairs of a PG go when its set would not be one of the rule's,
    or a target is out or has no CRUSH weight. Source: OSDMap::check_pg_upmaps.
    """
    asked = {pg: pairs for pg, pairs in pins.items() if pairs and pg in view.pgs}
    try:
        raw = placed(view, (), asked, pinned=False)
    except CannotPlace:
        return dict(pins)
    against = _against(view, {pg: applied(raw[pg], pairs) for pg, pairs in asked.items()})
    in_use = {osd.id for osd in view.osds.values() if osd.reweight > 0 and osd.crush_weight > 0}
    kept = dict(pins)
    for pg, pairs in asked.items():
        if pg in against or not all(target in in_use for _, target in pairs):
            kept[pg] = ()
        else:
            kept[pg] = tuple(pair for pair in pairs if pair[0] in raw[pg])
    return kept


def _against(view: ClusterView, after: Placement) -> frozenset[PgId]:
    checks = {
        pool: find_upmap_check(view.crush, view.pools[pool]) for pool in {view.pgs[pg].pool for pg in after}
    }
    return frozenset(pg for pg, up in after.items() if not checks[view.pgs[pg].pool].keeps_upmap(up))
