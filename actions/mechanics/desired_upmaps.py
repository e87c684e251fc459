"""The upmap items that a PG should have once a drain is cancelled: those of others, and those of drains that
stay.

The cancelled drain is left out of the overlay of drains and has no other special treatment. The order in
which drains are cancelled therefore changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.cluster.osd_layout import find_osd_layout
from predrain.actions.core.capacity import OsdCapacity
from predrain.actions.core.claimed_settings import (
    Pairs,
    collect_upmap_items,
    find_base,
    read_pairs,
    read_setting_value,
)
from predrain.actions.core.situation import Context
from predrain.actions.crush.crush_rules import CannotPlace
from predrain.actions.placement.failure_domains import (
    Domains,
    apply_upmap_pairs,
    find_crowded_device,
    find_failure_domains,
    find_shared_devices,
    has_both_osds,
    list_incoming_osds,
    pairs_for,
)
from predrain.actions.placement.what_if import compute_up_sets, find_kept_pairs
from predrain.data.drain import Drain, DrainState, Intent, Move
from predrain.data.ids import OsdId, PgId
from predrain.data.setting import Setting, UpmapItem


def find_desired_upmaps(
    view: ClusterView, drain: Drain, context: Context, pgs: Iterable[PgId]
) -> dict[PgId, Pairs]:
    """Return the pairs that each PG of `drain` should have without it.

    Pairs of OSDs that are not in the map are left out. If the map cannot be computed, the result is the pairs
    that others left.
    """
    known = (drain, *context.list_claimants(drain))
    base: dict[PgId, Pairs] = {}
    for pg in pgs:
        key = UpmapItem(pg)
        left = find_base(known, key, read_setting_value(view, key))
        pairs = read_pairs(drain.saved.get(key, "") if left is None else left)
        base[pg] = tuple(pair for pair in pairs if has_both_osds(view, pair))
    wanted_moves = _list_wanted_moves(drain, context, base.keys())
    asked = [pg for pg, known in wanted_moves.items() if known and pg in view.pgs]
    try:
        raw = compute_up_sets(view, (), asked, with_upmaps=False)
    except CannotPlace:
        return base
    regions = {
        pool: find_failure_domains(view.crush, view.pools[pool])
        for pool in {view.pgs[pg].pool for pg in asked}
    }
    out = find_osd_layout(view.osds).out
    for pg in asked:
        base[pg] = _overlay_drain_moves(
            view, pg, regions[view.pgs[pg].pool], raw[pg], base[pg], wanted_moves[pg], out
        )
    return base


def find_stray_upmaps(
    view: ClusterView, drain: Drain, context: Context, room: OsdCapacity
) -> dict[PgId, Pairs]:
    """Find PGs whose upmap items of an emptied drain are no longer needed; return the pairs that they should
    have.

    The items differ from those that others had left, though the latter would do by now. The search covers
    `drain` if it has emptied its OSD, and all emptied drains if it is being cancelled. Such a drain was
    planned while other OSDs were to leave too, which stay after all. It also covers PGs for which the drain
    wants no items at all: others' items to an OSD that stays after all are missing there, and a command that
    removes the drain's own items may have been lost.

    An item of a removal is not among them, since it is kept for the balancer. An item also stays if without
    it the PG would go to an OSD that is leaving or too full, or that shares a device with other members of
    the PG.
    """
    emptied = (
        [
            other
            for other in context.drains
            if other.state in (DrainState.VERIFIED, DrainState.HANDED_OVER) and context.still_claims(other)
        ]
        if drain.state is DrainState.CANCELLING
        else [drain]
    )
    upmaps = {
        pg
        for other in emptied
        if other.intent is Intent.REPLACE
        for pg in collect_upmap_items(other.ours)
        if pg in view.pgs
    }
    upmaps -= {
        pg for other in context.drains if other.intent.removes_osd for pg in collect_upmap_items(other.ours)
    }
    if not upmaps:
        return {}
    desired = find_kept_pairs(view, find_desired_upmaps(view, drain, context, sorted(upmaps)))
    strays = {pg: pairs for pg, pairs in desired.items() if set(pairs) != set(view.upmap_items.get(pg, ()))}
    try:
        raw = compute_up_sets(view, (), strays, with_upmaps=False)
    except CannotPlace:
        return {}
    leaving, shared = (
        {int(osd) for osd in (*context.list_draining_osds(), *drain.avoided)},
        find_shared_devices(view),
    )

    def may_go(pg: Pg, want: tuple[int, ...]) -> bool:
        bound = list_incoming_osds(pg.up, want, ordered=view.pools[pg.pool].erasure)
        untold = [osd for osd in bound if room.fullness(OsdId(osd)) is None]
        fits = all(osd in untold or room.fits(OsdId(osd), pg.shard_bytes) for osd in bound)
        return fits and not leaving & set(bound) and find_crowded_device(shared, pg.up, want) is None

    return {
        pg: pairs for pg, pairs in strays.items() if may_go(view.pgs[pg], apply_upmap_pairs(raw[pg], pairs))
    }


def list_claims_for_others(view: ClusterView, drain: Drain, context: Context) -> dict[Setting, str]:
    """Return the claims that a cancelled drain keeps: upmap items that it left for drains that stay, with
    present values.
    """
    claimed = {
        key for other in context.list_claimants(drain) for key in other.ours if isinstance(key, UpmapItem)
    }
    return {
        key: now
        for key in drain.ours
        if isinstance(key, UpmapItem)
        and key in claimed
        and (now := read_setting_value(view, key)) != drain.saved.get(key, "")
    }


def _overlay_drain_moves(
    view: ClusterView,
    pg: PgId,
    region: Domains,
    raw: tuple[int, ...],
    base: Pairs,
    wanted_moves: Iterable[tuple[frozenset[OsdId], Sequence[Move]]],
    out: Collection[int],
) -> Pairs:
    """Return the pairs that keep the PG away from each OSD that it has left for a drain that stays.

    A pair of `base` to an OSD that is out has no effect, so nothing has to keep the PG away from that OSD.
    wanted_moves: for each such drain, its OSDs and its moves of this PG. Shards of other OSDs move with them only
    if the failure domains require it. A move that does not fit the others is left out, and that drain plans
    the PG again.
    """
    up = want = apply_upmap_pairs(raw, tuple(pair for pair in base if pair[1] not in out))
    for osds, moves in wanted_moves:
        own = [move for move in moves if move.source in osds]
        if not any(move.source in want for move in own) or any(
            move.source in view.pgs[pg].up for move in own
        ):
            continue
        tries = (tuple(_replace_members(want, chosen)) for chosen in (own, moves))
        want = next((tried for tried in tries if region.is_legal(tried)), want)
    if want == up:
        return base
    pairs = pairs_for(raw, want, base, ordered=view.pools[view.pgs[pg].pool].erasure)
    return base if pairs is None else pairs


def _replace_members(members: Iterable[int], moves: Iterable[Move]) -> Iterator[int]:
    targets = {int(move.source): int(move.target) for move in moves}
    return (targets.get(osd, osd) for osd in members)


def _list_wanted_moves(
    drain: Drain, context: Context, pgs: Iterable[PgId]
) -> dict[PgId, list[tuple[frozenset[OsdId], list[Move]]]]:
    """Return, for each PG, the drains that moved it on and stay, oldest first: those whose OSDs are or become
    empty.
    """
    wanted_moves: dict[PgId, list[tuple[frozenset[OsdId], list[Move]]]] = {pg: [] for pg in pgs}
    for other in sorted(context.drains, key=lambda other: (other.created_at, other.id)):
        if other.id == drain.id or other.plan is None or not _must_stay_empty(other, context):
            continue
        moves: dict[PgId, list[Move]] = {}
        for move in other.plan.moves:
            if move.pg in wanted_moves and UpmapItem(move.pg) in other.ours:
                moves.setdefault(move.pg, []).append(move)
        for pg, mine in moves.items():
            wanted_moves[pg].append((frozenset(other.osds), mine))
    return wanted_moves


def _must_stay_empty(drain: Drain, context: Context) -> bool:
    """Return whether a drain's OSDs must stay empty."""
    paused = drain.state in (DrainState.PAUSED, DrainState.FAILED)
    state = drain.resume_to if paused else drain.state
    if not drain.intent.empties_osd or state is DrainState.CANCELLING:
        return False
    return context.still_claims(drain)
