"""A view surveyed once: which PGs are not at rest, which are not whole, and what is still on its way to
each OSD.

All that guards and mechanics ask of 16,384 PGs is asked here in one pass; the next survey only looks at PGs
that the new view does not share with the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from predrain.actions.cluster.view import ClusterView, Pg
from predrain.actions.crush.map import ITEM_NONE
from predrain.actions.placement.failure_domains import comers
from predrain.data.ids import OsdId, PgId

_AT_REST = frozenset({"active", "clean", "scrubbing", "deep", "snaptrim", "snaptrim_wait"})
_MOVING = _AT_REST | {"remapped", "backfilling", "backfill_wait", "backfill_toofull", "forced_backfill"}


@lru_cache(maxsize=4096)
def at_rest(states: frozenset[str]) -> bool:
    """`active+clean`, perhaps being scrubbed. Anything not known good is not at rest."""
    return states <= _AT_REST and "active" in states and "clean" in states


def rests(pg: Pg) -> bool:
    """Whether the PG is at rest, and lies where the map wants it."""
    return at_rest(pg.states) and pg.up == pg.acting


_RECOVERING = _MOVING | {
    "degraded",
    "undersized",
    "recovering",
    "recovery_wait",
    "recovery_toofull",
    "forced_recovery",
    "inconsistent",
    "repair",
}


@lru_cache(maxsize=4096)
def is_recovering(states: frozenset[str]) -> bool:
    """Whether the PG serves its clients and lacks no more than copies. A state that is not known says no."""
    return states <= _RECOVERING and "active" in states


@lru_cache(maxsize=4096)
def serving_whole(states: frozenset[str]) -> bool:
    """At rest, or moving whole copies about (misplaced, not degraded)."""
    return states <= _MOVING and "active" in states


def whole(members: tuple[int, ...], size: int) -> bool:
    """As many distinct OSDs as the pool wants: no hole, none twice (ceph.md d: both exist under
    HEALTH_OK).
    """
    return len(set(members)) == size == len(members) and ITEM_NONE not in members


@dataclass(frozen=True, slots=True)
class Survey:
    """What the pass found. Mappings are keyed by PG id."""

    view: ClusterView
    restless: Mapping[PgId, Pg]
    """PGs that are not at rest, or whose `up` and `acting` differ."""
    broken: Mapping[PgId, Pg]
    """PGs whose `up` or `acting` is not whole."""
    incoming: Mapping[OsdId, int]
    """Bytes still on their way to an OSD: shards whose `up` is there and whose `acting` is not."""
    incoming_pgs: Mapping[OsdId, int]

    def of_osd(self, osd: OsdId) -> tuple[Pg, ...]:
        """PGs that have the OSD in `up` or `acting`."""
        return tuple(pg for pg in self.view.pgs.values() if osd in pg.up or osd in pg.acting)

    def alive(self, pg: Pg) -> int:
        """Distinct members of `acting` that are up."""
        osds = self.view.osds
        return sum(1 for osd in set(pg.acting) if osd in osds and osds[OsdId(osd)].up)

    def is_whole(self, pg: Pg) -> bool:
        """Every former member is there: `acting` whole and all of it up."""
        size = self.view.pools[pg.pool].size
        return whole(pg.acting, size) and self.alive(pg) == size


_SENT = frozenset({"active", "remapped"})
"""What a PG is taken for that the map has sent elsewhere and that has not reported since."""


def add_unreported(found: Survey, unreported: Mapping[PgId, tuple[int, ...]]) -> Survey:
    """The survey with PGs that have not reported since a command, each on its way to its `up` by the map."""
    view = found.view
    sent = {pg: replace(view.pgs[pg], up=up, states=_SENT) for pg, up in unreported.items() if pg in view.pgs}
    if not sent:
        return found
    restless = {**found.restless, **sent}
    incoming, incoming_pgs = _count_incoming(view, restless.values())
    return replace(found, restless=restless, incoming=incoming, incoming_pgs=incoming_pgs)


def survey(view: ClusterView, before: Survey | None = None) -> Survey:
    """One pass over the view's PGs; with `before`, only over those that are not the same objects as then."""
    restless: dict[PgId, Pg] = {}
    broken: dict[PgId, Pg] = {}
    candidates: Iterable[tuple[PgId, Pg]]
    if before is not None and before.view.pools == view.pools:
        old = before.view.pgs
        suspects = before.restless.keys() | before.broken.keys()
        candidates = [
            item for item in view.pgs.items() if old.get(item[0]) is not item[1] or item[0] in suspects
        ]
    else:
        candidates = view.pgs.items()
    sizes = {pool.id: pool.size for pool in view.pools.values()}
    for id_, pg in candidates:
        if not rests(pg):
            restless[id_] = pg
        size = sizes[pg.pool]
        if not whole(pg.up, size) or (pg.acting != pg.up and not whole(pg.acting, size)):
            broken[id_] = pg
    incoming, incoming_pgs = _count_incoming(view, restless.values())
    return Survey(view, restless, broken, incoming, incoming_pgs)


def _count_incoming(view: ClusterView, pgs: Iterable[Pg]) -> tuple[dict[OsdId, int], dict[OsdId, int]]:
    """Bytes and PGs on their way to each OSD."""
    incoming: dict[OsdId, int] = {}
    incoming_pgs: dict[OsdId, int] = {}
    for pg in pgs:
        for osd in comers(pg.acting, pg.up, ordered=view.pools[pg.pool].erasure):
            incoming[OsdId(osd)] = incoming.get(OsdId(osd), 0) + pg.shard_bytes
            incoming_pgs[OsdId(osd)] = incoming_pgs.get(OsdId(osd), 0) + 1
    return incoming, incoming_pgs
