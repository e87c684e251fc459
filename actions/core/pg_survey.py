"""A survey of a view: PGs not at rest, PGs that are not whole, and the data still on its way to each OSD.

One pass over up to 16,384 PGs answers all that guards and mechanics ask. The next survey reads only the PGs
that the new view does not share with the old one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.cluster.osd_layout import find_osd_layout
from predrain.actions.cluster.pg_index import find_pg_index, list_changed_pgs
from predrain.actions.crush.crush_map import ITEM_NONE
from predrain.actions.placement.failure_domains import list_incoming_osds
from predrain.data.ids import OsdId, PgId

_AT_REST = frozenset({"active", "clean", "scrubbing", "deep", "snaptrim", "snaptrim_wait"})
_MOVING = _AT_REST | {"remapped", "backfilling", "backfill_wait", "backfill_toofull", "forced_backfill"}


@lru_cache(maxsize=4096)
def at_rest(states: frozenset[str]) -> bool:
    """Return whether the states are `active+clean`, perhaps with a scrub. An unknown state is not at rest."""
    return states <= _AT_REST and "active" in states and "clean" in states


def is_pg_at_rest(pg: Pg) -> bool:
    """Return whether the PG is at rest and lies where the map wants it."""
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
    """Return whether the PG serves its clients and lacks no more than copies; False for an unknown state."""
    return states <= _RECOVERING and "active" in states


@lru_cache(maxsize=4096)
def serving_whole(states: frozenset[str]) -> bool:
    """Return whether the PG is at rest or moves whole copies (misplaced, not degraded)."""
    return states <= _MOVING and "active" in states


def has_all_members(members: tuple[int, ...], size: int) -> bool:
    """Return whether there are as many distinct OSDs as the pool wants, with no hole and no repetition.

    Both defects exist under HEALTH_OK (ceph.md d).
    """
    return len(set(members)) == size == len(members) and ITEM_NONE not in members


@dataclass(frozen=True, slots=True)
class Survey:
    """The result of the pass. Mappings are keyed by PG id."""

    view: ClusterView
    unclean: Mapping[PgId, Pg]
    """PGs that are not at rest, whose `up` and `acting` differ, or that have a member which is down."""
    broken: Mapping[PgId, Pg]
    """PGs whose `up` or `acting` is not whole."""
    incoming: Mapping[OsdId, int]
    """Bytes still on their way to each OSD: shards that have the OSD in `up` and not in `acting`."""
    incoming_pgs: Mapping[OsdId, int]
    unreported: frozenset[PgId] = frozenset()
    """PGs of `unclean` whose `up` is that of the map and not the one that the view reports (`add_unreported`)."""

    def find_ids_by_osds(self, osds: Collection[OsdId]) -> set[PgId]:
        """Return the ids of the PGs that have one of the OSDs in `up` or `acting`, by their report or by the map."""
        index = find_pg_index(self.view.pgs)
        found = {pg.id for osd in osds for pg in index.list_pgs(osd)}
        for id_ in self.unreported:
            pg = self.unclean[id_]
            if not {*pg.up, *pg.acting}.isdisjoint(osds):
                found.add(id_)
        return found

    def list_unclean_pgs(self, ids: Iterable[PgId]) -> list[Pg]:
        """Return those of the PGs that are in `unclean`, in the order of the view."""
        known = [id_ for id_ in ids if id_ in self.unclean]
        return [self.unclean[id_] for id_ in find_pg_index(self.view.pgs).sort_ids(known)]

    def of_osd(self, osd: OsdId) -> tuple[Pg, ...]:
        """Return the PGs that have the OSD in `up` or `acting`."""
        return find_pg_index(self.view.pgs).list_pgs(osd)

    def count_alive_members(self, pg: Pg) -> int:
        """Count the distinct members of `acting` that are up."""
        osds = self.view.osds
        return sum(1 for osd in set(pg.acting) if osd in osds and osds[OsdId(osd)].up)

    def is_whole(self, pg: Pg) -> bool:
        """Return whether `acting` is whole and every member of it is up."""
        size = self.view.pools[pg.pool].size
        return has_all_members(pg.acting, size) and self.count_alive_members(pg) == size


_SENT = frozenset({"active", "remapped"})
"""The assumed states of a PG that the map has sent elsewhere and that has not reported since."""


def add_unreported(found: Survey, unreported: Mapping[PgId, tuple[int, ...]]) -> Survey:
    """Return the survey with PGs that have not reported since a command, each on its way to its `up` by the
    map.
    """
    view = found.view
    sent = {pg: replace(view.pgs[pg], up=up, states=_SENT) for pg, up in unreported.items() if pg in view.pgs}
    if not sent:
        return found
    unclean = {**found.unclean, **sent}
    incoming, incoming_pgs = _count_incoming(view, unclean.values())
    return replace(
        found,
        unclean=unclean,
        incoming=incoming,
        incoming_pgs=incoming_pgs,
        unreported=frozenset(sent),
    )


def survey_pgs(view: ClusterView, before: Survey | None = None) -> Survey:
    """Survey the view's PGs in one pass; with `before`, read only PGs that are not the same objects as then."""
    unclean: dict[PgId, Pg] = {}
    broken: dict[PgId, Pg] = {}
    # The OSDs that are down by the map: their PGs lack a copy, even those that have not reported since.
    down = find_osd_layout(view.osds).down
    sizes = {pool.id: pool.size for pool in view.pools.values()}
    for id_, pg in _list_candidates(view, before, down):
        if not is_pg_at_rest(pg) or not down.isdisjoint(pg.acting):
            unclean[id_] = pg
        size = sizes[pg.pool]
        if not has_all_members(pg.up, size) or (pg.acting != pg.up and not has_all_members(pg.acting, size)):
            broken[id_] = pg
    incoming, incoming_pgs = _count_incoming(view, unclean.values())
    return Survey(view, unclean, broken, incoming, incoming_pgs)


def _list_candidates(
    view: ClusterView, before: Survey | None, down: frozenset[OsdId]
) -> Iterable[tuple[PgId, Pg]]:
    """Return the PGs, in the order of the view, of which the survey before does not say that they are at rest."""
    if (
        before is None
        or before.view.pools != view.pools
        or find_osd_layout(before.view.osds).down != down
        or (changed := list_changed_pgs(before.view.pgs, view.pgs)) is None
    ):
        return view.pgs.items()
    suspects = before.unclean.keys() | before.broken.keys() | {pg.id for _, pg in changed}
    return [(id_, view.pgs[id_]) for id_ in find_pg_index(view.pgs).sort_ids(suspects)]


def _count_incoming(view: ClusterView, pgs: Iterable[Pg]) -> tuple[dict[OsdId, int], dict[OsdId, int]]:
    """Count the bytes and the PGs on their way to each OSD."""
    incoming: dict[OsdId, int] = {}
    incoming_pgs: dict[OsdId, int] = {}
    for pg in pgs:
        for osd in list_incoming_osds(pg.acting, pg.up, ordered=view.pools[pg.pool].erasure):
            incoming[OsdId(osd)] = incoming.get(OsdId(osd), 0) + pg.shard_bytes
            incoming_pgs[OsdId(osd)] = incoming_pgs.get(OsdId(osd), 0) + 1
    return incoming, incoming_pgs
