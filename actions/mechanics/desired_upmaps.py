"""What should stand for a PG once a drain is taken back: what others left, and what the drains that stay want.

A cancelled drain is not in the overlay, and nothing else tells it from the others: the order in which drains are
cancelled changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from predrain.actions.cluster.view import ClusterView, Pg
from predrain.actions.core.capacity import OsdCapacity
from predrain.actions.core.claimed_settings import (
    Pairs,
    find_base,
    found,
    pinned,
    read_pairs,
)
from predrain.actions.core.situation import Context
from predrain.actions.crush.choose import CannotPlace
from predrain.actions.mechanics.void import find_kept_pairs
from predrain.actions.placement.failure_domains import (
    Domains,
    applied,
    comers,
    domains,
    has_both_osds,
    pairs_for,
)
from predrain.actions.placement.shared_failure import crowded, fates
from predrain.actions.placement.what_if import placed
from predrain.data.drain import Drain, DrainState, Intent, Move
from predrain.data.ids import OsdId, PgId
from predrain.data.setting import Setting, UpmapItem


def find_desired_upmaps(
    view: ClusterView, drain: Drain, context: Context, pgs: Iterable[PgId]
) -> dict[PgId, Pairs]:
    """The pairs that each PG of `drain` should have without it.

    Pairs of OSDs that are not in the map are left out. Where the map cannot be computed, the pairs that others left.
    """
    known = (drain, *context.list_claimants(drain))
    base: dict[PgId, Pairs] = {}
    for pg in pgs:
        key = UpmapItem(pg)
        left = find_base(known, key, found(view, key))
        pairs = read_pairs(drain.saved.get(key, "") if left is None else left)
        base[pg] = tuple(pair for pair in pairs if has_both_osds(view, pair))
    wishes = _list_wishes(drain, context, base.keys())
    asked = [pg for pg, known in wishes.items() if known and pg in view.pgs]
    try:
        raw = placed(view, (), asked, pinned=False)
    except CannotPlace:
        return base
    regions = {pool: domains(view.crush, view.pools[pool]) for pool in {view.pgs[pg].pool for pg in asked}}
    out = {int(osd.id) for osd in view.osds.values() if osd.reweight == 0.0}
    for pg in asked:
        base[pg] = _overlay(view, pg, regions[view.pgs[pg].pool], raw[pg], base[pg], wishes[pg], out)
    return base


def find_stray_upmaps(
    view: ClusterView, drain: Drain, context: Context, room: OsdCapacity
) -> dict[PgId, Pairs]:
    """PGs whose pins a drain that emptied its OSD left otherwise than others had left them, though those would do by
    now, with their pairs then: of `drain` itself where it has emptied one, of all such drains where it is cancelled.

    Such a drain was planned while other OSDs were to leave as well, which stay after all. A pin of a removal is not
    among them, for it is kept for the balancer, nor one without which the PG would go to an OSD that is leaving, has no
    room for it, or would die together with others of it.
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
    pins = {
        pg
        for other in emptied
        if other.intent is Intent.REPLACE
        for pg, pairs in pinned(other.ours).items()
        if pairs and pg in view.pgs
    }
    pins -= {pg for other in context.drains if other.intent.removes_osd for pg in pinned(other.ours)}
    if not pins:
        return {}
    desired = find_kept_pairs(view, find_desired_upmaps(view, drain, context, sorted(pins)))
    strays = {pg: pairs for pg, pairs in desired.items() if set(pairs) != set(view.upmap_items.get(pg, ()))}
    try:
        raw = placed(view, (), strays, pinned=False)
    except CannotPlace:
        return {}
    leaving, shared = {int(osd) for osd in (*context.draining(), *drain.avoided)}, fates(view)

    def may_go(pg: Pg, want: tuple[int, ...]) -> bool:
        bound = comers(pg.up, want, ordered=view.pools[pg.pool].erasure)
        untold = [osd for osd in bound if room.fullness(OsdId(osd)) is None]
        fits = all(osd in untold or room.fits(OsdId(osd), pg.shard_bytes) for osd in bound)
        return fits and not leaving & set(bound) and crowded(shared, pg.up, want) is None

    return {pg: pairs for pg, pairs in strays.items() if may_go(view.pgs[pg], applied(raw[pg], pairs))}


def list_claims_for_others(view: ClusterView, drain: Drain, context: Context) -> dict[Setting, str]:
    """What a drain that is taken back goes on to claim: pins that it left for drains that stay, as they stand."""
    claimed = {
        key for other in context.list_claimants(drain) for key in other.ours if isinstance(key, UpmapItem)
    }
    return {
        key: now
        for key in drain.ours
        if isinstance(key, UpmapItem)
        and key in claimed
        and (now := found(view, key)) != drain.saved.get(key, "")
    }


def _overlay(
    view: ClusterView,
    pg: PgId,
    region: Domains,
    raw: tuple[int, ...],
    base: Pairs,
    wishes: Iterable[tuple[frozenset[OsdId], Sequence[Move]]],
    out: Collection[int],
) -> Pairs:
    """The pairs with which the PG stays away from each OSD that it has left for a drain that stays.

    A pair of `base` to an OSD that is out does nothing, so that nothing has to keep the PG away from that OSD.

    wishes: for each such drain its OSDs and its moves of this PG. Shards of other OSDs move with them only where the
    failure domains want it. A wish that cannot be had beside the rest is left out, and that drain plans it anew.
    """
    up = want = applied(raw, tuple(pair for pair in base if pair[1] not in out))
    for osds, moves in wishes:
        own = [move for move in moves if move.source in osds]
        if not any(move.source in want for move in own) or any(
            move.source in view.pgs[pg].up for move in own
        ):
            continue
        tries = (tuple(_replace(want, chosen)) for chosen in (own, moves))
        want = next((tried for tried in tries if region.legal(tried)), want)
    if want == up:
        return base
    pairs = pairs_for(raw, want, base, ordered=view.pools[view.pgs[pg].pool].erasure)
    return base if pairs is None else pairs


def _replace(members: Iterable[int], moves: Iterable[Move]) -> Iterator[int]:
    targets = {int(move.source): int(move.target) for move in moves}
    return (targets.get(osd, osd) for osd in members)


def _list_wishes(
    drain: Drain, context: Context, pgs: Iterable[PgId]
) -> dict[PgId, list[tuple[frozenset[OsdId], list[Move]]]]:
    """For each PG the drains that sent it on and stay, the oldest first: those that empty an OSD or have emptied it."""
    wishes: dict[PgId, list[tuple[frozenset[OsdId], list[Move]]]] = {pg: [] for pg in pgs}
    for other in sorted(context.drains, key=lambda other: (other.created_at, other.id)):
        if other.id == drain.id or other.plan is None or not _stays(other, context):
            continue
        moves: dict[PgId, list[Move]] = {}
        for move in other.plan.moves:
            if move.pg in wishes and UpmapItem(move.pg) in other.ours:
                moves.setdefault(move.pg, []).append(move)
        for pg, mine in moves.items():
            wishes[pg].append((frozenset(other.osds), mine))
    return wishes


def _stays(drain: Drain, context: Context) -> bool:
    """Whether a drain wants its OSDs to stay empty."""
    paused = drain.state in (DrainState.PAUSED, DrainState.FAILED)
    state = drain.resume_to if paused else drain.state
    if not drain.intent.empties_osd or state is DrainState.CANCELLING:
        return False
    return context.still_claims(drain)
