"""Whether the placement that is computed is the cluster's own: a plan on any other would move the wrong PGs.

Whatever makes the two differ (a kind of map that is not known here, a dump that lacks a field), it shows in where the
PGs are now, which is computed and told alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from predrain.actions.cluster.view import ClusterView, Pg
from predrain.actions.core.pg_survey import Survey
from predrain.actions.core.verdicts import count
from predrain.actions.placement.what_if import placed
from predrain.data.ids import OsdId


def disagreement(view: ClusterView, pgs: Iterable[Pg], survey: Survey, suspects: Iterable[OsdId]) -> str:
    """One sentence when a PG of the suspects is elsewhere than computed; empty when none is, or none can be asked.

    Asked are PGs at rest that reported in this very epoch: an older report tells of an older map, and idle PGs stay
    behind for minutes (ceph.md e). The order of copies is left out: `pg_upmap_primaries` may change who leads. Full
    `pg_upmap` entries are not in the view, so nobody is asked where they stand.
    """
    if view.has_full_upmaps:
        return ""
    asked = [
        pg
        for pg in pgs
        if pg.reported_epoch == view.epoch and pg.id not in survey.restless and pg.id not in survey.broken
    ]
    computed = placed(view, (), [pg.id for pg in asked])
    unlike = [pg for pg in asked if not _same(pg.up, computed[pg.id], ordered=view.pools[pg.pool].erasure)]
    if not unlike:
        return ""
    first = min(unlike, key=lambda pg: pg.id)
    names = ", ".join(f"osd.{osd}" for osd in suspects)
    return (
        f"The placement that was computed is not the cluster's: {len(unlike)} of {count(len(asked), 'PG')} of "
        f"{names} differ, e.g. PG {first.id} is on {list(first.up)} and not {list(computed[first.id])}; "
        "nothing is planned."
    )


def _same(told: tuple[int, ...], computed: tuple[int, ...], *, ordered: bool) -> bool:
    return told == computed if ordered else set(told) == set(computed)
