"""Pins that the mon drops: beside what CRUSH chooses they would put two shards of a PG into one failure domain.

It drops them seconds after the PG has peered so, and another OSD than was computed fills. So they go before a weight
that makes them void.
"""

from __future__ import annotations

from collections.abc import Mapping

from actions.cluster.view import ClusterView
from actions.crush.choose import CannotPlace
from actions.foresight import Placement, placed
from actions.ledger import Pairs
from actions.topology import applied, domains
from data.ids import PgId


def void(view: ClusterView, after: Placement) -> frozenset[PgId]:
    """PGs of `after` whose standing pins the mon would drop. Source: CrushWrapper::verify_upmap."""
    return _against(view, {pg: up for pg, up in after.items() if view.upmap_items.get(pg)})


def void_here(view: ClusterView, pins: Mapping[PgId, Pairs]) -> frozenset[PgId]:
    """PGs whose `pins`, set now, the mon would drop. None where the map cannot be computed: it will judge them."""
    asked = {pg: pairs for pg, pairs in pins.items() if pairs and pg in view.pgs}
    try:
        raw = placed(view, (), asked, pinned=False)
    except CannotPlace:
        return frozenset()
    return _against(view, {pg: applied(raw[pg], pairs) for pg, pairs in asked.items()})


def _against(view: ClusterView, after: Placement) -> frozenset[PgId]:
    regions = {pool: domains(view.crush, view.pools[pool]) for pool in {view.pgs[pg].pool for pg in after}}
    return frozenset(pg for pg, up in after.items() if not regions[view.pgs[pg].pool].legal(up))
