"""What should stand for a PG once a drain is taken back: what others left, and what the drains that stay want.

A cancelled drain is not in the overlay, and nothing else tells it from the others: the order in which drains are
cancelled changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from actions.cluster.view import ClusterView, Pg
from actions.context import Context
from actions.crush.choose import CannotPlace
from actions.crush.map import ITEM_NONE
from actions.fate import crowded, fates
from actions.flags import let_go
from actions.foresight import placed, weighed
from actions.ledger import (
    ABSENT,
    Pairs,
    explained,
    find_base,
    found,
    pinned,
    read_pairs,
    write_pairs,
)
from actions.mechanics.void import find_kept_pairs
from actions.space import Room
from actions.states import ENDED
from actions.topology import Domains, applied, comers, domains, pairs_for
from data.drain import Drain, DrainState, Intent, Move
from data.ids import OsdId, PgId
from data.setting import Before, OsdCrushWeight, OsdOverride, Setting, UpmapItem


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
    asked = [pg for pg, known in wishes.items() if known]
    try:
        raw = placed(view, (), asked, pinned=False)
    except CannotPlace:
        return base
    regions = {pool: domains(view.crush, view.pools[pool]) for pool in {view.pgs[pg].pool for pg in asked}}
    for pg in asked:
        base[pg] = _overlay(view, pg, regions[view.pgs[pg].pool], raw[pg], base[pg], wishes[pg])
    return base


def find_stray_upmaps(view: ClusterView, drain: Drain, context: Context, room: Room) -> dict[PgId, Pairs]:
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
    pins -= {pg for other in context.drains if other.intent is Intent.REMOVE for pg in pinned(other.ours)}
    if not pins:
        return {}
    desired = find_kept_pairs(view, find_desired_upmaps(view, drain, context, pins))
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


def _did_not_arrive(drain: Drain, pg: PgId, pairs: Collection[tuple[int, int]]) -> bool:
    """Whether the PG's list is still what it was before the drain's last command, which is sent again then."""
    was = drain.ours.get(Before(UpmapItem(pg)))
    return was is not None and set(read_pairs(was)) == set(pairs)


def pinned_as(drain: Drain, pg: PgId, pairs: Collection[tuple[int, int]]) -> bool:
    """Whether a drain wrote exactly these pairs as the PG's list."""
    wrote = drain.ours.get(UpmapItem(pg))
    return wrote is not None and set(read_pairs(wrote)) == set(pairs)


def follow_map(drain: Drain, view: ClusterView, drains: Collection[Drain]) -> Drain:
    """The drain without claims to what is gone, and with what became of others' pins: one revision on where anything
    changed, whatever it was.
    """
    followed = forget_claims(let_go(drain, view), view, drains)
    if drain.state not in ENDED:
        followed = forget_void_pairs(fold_base_pairs(followed, view, drains), view, drains)
    return drain if followed is drain else replace(followed, revision=drain.revision + 1)


def forget_claims(drain: Drain, view: ClusterView, drains: Iterable[Drain]) -> Drain:
    """A cancelled drain without its claims to pins that it left for others and that stand no more, or for drains that
    are over by now: one revision on where it has any.
    """
    if drain.state is not DrainState.CANCELLED or not any(isinstance(key, UpmapItem) for key in drain.ours):
        return drain
    others = [other for other in drains if other.id != drain.id and other.state not in ENDED]
    ours = {
        key: value
        for key, value in drain.ours.items()
        if not isinstance(key, UpmapItem)
        or (found(view, key) == value and any(key in other.ours for other in others))
    }
    return drain if ours == drain.ours else replace(drain, ours=ours, revision=drain.revision + 1)


def fold_base_pairs(drain: Drain, view: ClusterView, drains: Iterable[Drain]) -> Drain:
    """The drain with what became of the pairs that others had left on its PGs: one revision on where any is gone.

    The mon tidied such a pair where CRUSH does not choose its source by now, or where it drops the whole list: the
    drain puts it back when it is cancelled. Another hand took off one that could stand: it is not put back. This is to
    be asked at every look, since a pair that the mon tidied may be one that could stand again, later. What another one
    of `drains` has written is ours.
    """
    others = [other for other in drains if other.id != drain.id and other.ours]
    gone = {
        pg: lost
        for pg, pairs in pinned(drain.ours).items()
        if pg in view.pgs
        and (now := set(view.upmap_items.get(pg, ()))) < set(pairs)
        and not _did_not_arrive(drain, pg, now)
        and not any(pinned_as(other, pg, now) for other in others)
        and (lost := set(read_pairs(drain.saved.get(UpmapItem(pg), ""))) & set(pairs) - now)
    }
    seen = [
        Before(UpmapItem(pg))
        for pg, pairs in pinned(drain.ours).items()
        if Before(UpmapItem(pg)) in drain.ours
        and drain.saved.get(UpmapItem(pg))
        and pinned_as(drain, pg, view.upmap_items.get(pg, ()))
    ]  # from now on a pair that is gone was taken off
    if not gone and not seen:
        return drain
    could_stand = find_kept_pairs(view, {pg: read_pairs(drain.ours[UpmapItem(pg)]) for pg in gone})
    saved, ours = dict(drain.saved), {key: value for key, value in drain.ours.items() if key not in seen}
    for pg, lost in gone.items():
        key = UpmapItem(pg)
        ours[key] = found(view, key)
        ours.pop(Before(key), None)
        theirs = lost & set(could_stand[pg])
        saved[key] = write_pairs(tuple(pair for pair in read_pairs(saved[key]) if pair not in theirs))
    return replace(drain, saved=saved, ours=ours, revision=drain.revision + 1)


def forget_void_pairs(drain: Drain, view: ClusterView, drains: Collection[Drain]) -> Drain:
    """The drain without those pairs of others that the mon would have taken away without any drain: one revision on
    where there are any. Their target was marked out, say, while its host was down; the mon does not put them back.
    A list that names an OSD which is in the map no more stays: the end of a cancel tells of it.
    """
    pins = {
        pg: pairs
        for pg, pairs in pinned(drain.saved).items()
        if pairs and pg in view.pgs and all(has_both_osds(view, pair) for pair in pairs)
    }
    if not pins:
        return drain
    kept = find_kept_pairs(undo_weights(view, drains), pins)
    void: dict[Setting, str] = {
        UpmapItem(pg): write_pairs(kept[pg]) for pg, pairs in pins.items() if kept[pg] != pairs
    }
    if not void:
        return drain
    return replace(drain, saved={**drain.saved, **void}, revision=drain.revision + 1)


def undo_weights(view: ClusterView, drains: Iterable[Drain]) -> ClusterView:
    """The view with the override and CRUSH weight that each OSD would have without `drains`."""
    base = {
        key: float(value)
        for drain in drains
        for key, value in drain.saved.items()
        if isinstance(key, OsdOverride | OsdCrushWeight)
        and value != ABSENT
        and key in drain.ours
        and explained(drain, key, found(view, key))
    }
    osds = dict(view.osds)
    for osd in view.osds.values():
        was_out = osd.reweight == 0.0 and osd.old_weight > 0.0  # by the mon, with or without a drain
        override = osd.reweight if was_out else base.get(OsdOverride(osd.id), osd.reweight)
        weight = base.get(OsdCrushWeight(osd.id), osd.crush_weight)
        if (override, weight) != (osd.reweight, osd.crush_weight):
            osds[osd.id] = replace(osd, reweight=override, crush_weight=weight)
    changed = {
        id_: osd.crush_weight for id_, osd in osds.items() if osd.crush_weight != view.osds[id_].crush_weight
    }
    return replace(view, osds=osds, crush=weighed(view, changed))


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


def has_both_osds(view: ClusterView, pair: tuple[int, int]) -> bool:
    """Whether both OSDs of a pair are in the map."""
    return all(osd in view.osds or osd == ITEM_NONE for osd in pair)


def _overlay(
    view: ClusterView,
    pg: PgId,
    region: Domains,
    raw: tuple[int, ...],
    base: Pairs,
    wishes: Iterable[tuple[frozenset[OsdId], Sequence[Move]]],
) -> Pairs:
    """The pairs with which the PG stays away from each OSD that it has left for a drain that stays.

    wishes: for each such drain its OSDs and its moves of this PG. Shards of other OSDs move with them only where the
    failure domains want it. A wish that cannot be had beside the rest is left out, and that drain plans it anew.
    """
    up = applied(raw, base)
    want = up
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
    if drain.intent not in (Intent.REPLACE, Intent.REMOVE) or state is DrainState.CANCELLING:
        return False
    return context.still_claims(drain)
