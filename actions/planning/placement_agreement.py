"""Checks that the computed placement equals the cluster's own; a plan on any other placement would move the
wrong PGs.

Any cause of a difference (an unknown kind of map, a dump that lacks a field) shows in the present places of
the PGs, which are both computed and reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.core.pg_survey import Survey
from predrain.actions.placement.what_if import compute_up_sets
from predrain.data.ids import OsdId
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind


def find_placement_mismatch(
    view: ClusterView, pgs: Iterable[Pg], survey: Survey, suspects: Iterable[OsdId]
) -> PlanRefusal | None:
    """Return a refusal if a PG of the suspects is elsewhere than computed; None if none is, or none can be
    compared.

    Only PGs at rest that reported in this very epoch are compared: an older report shows an older map, and
    idle PGs stay behind for minutes (ceph.md e). The order of copies is ignored, because `pg_upmap_primaries`
    may change the primary. If full `pg_upmap` entries exist, nothing is compared, because the view does not
    contain them.
    """
    if view.has_full_upmaps:
        return None
    asked = [
        pg
        for pg in pgs
        if pg.reported_epoch == view.epoch and pg.id not in survey.unclean and pg.id not in survey.broken
    ]
    computed = compute_up_sets(view, (), [pg.id for pg in asked])
    unlike = [
        pg
        for pg in asked
        if not _has_same_members(pg.up, computed[pg.id], ordered=view.pools[pg.pool].erasure)
    ]
    if not unlike:
        return None
    first = min(unlike, key=lambda pg: pg.id)
    return PlanRefusal(
        PlanRefusalKind.PLACEMENT_DIFFERS,
        osds=tuple(suspects),
        pg=first.id,
        pgs=len(unlike),
        others=len(asked),
        members=first.up,
        computed=computed[first.id],
    )


def _has_same_members(told: tuple[int, ...], computed: tuple[int, ...], *, ordered: bool) -> bool:
    return told == computed if ordered else set(told) == set(computed)
