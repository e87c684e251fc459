"""What drains claim, as it follows from what the map shows: which values are others', which stand no more, and which
pairs another hand took off.

Each drain keeps what it found and what it wrote. What it found is the same in every drain that claims the setting, so
that what one of them learns of others' pairs holds for all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import ABSENT, explained, found, pinned, read_pairs, write_pairs
from predrain.actions.core.flags import let_go
from predrain.actions.core.situation import stands_empty
from predrain.actions.core.state_machine import ENDED
from predrain.actions.mechanics.void import find_kept_pairs
from predrain.actions.placement.failure_domains import has_both_osds
from predrain.actions.placement.what_if import weighed
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import PgId, pg_seed
from predrain.data.setting import Before, OsdCrushWeight, OsdOverride, Setting, UpmapItem

Pair = tuple[int, int]


def follow_map(view: ClusterView, drains: tuple[Drain, ...]) -> tuple[Drain, ...]:
    """The drains without claims to what is gone, and with what became of others' upmaps: each one revision on where
    anything of it changed. The map must have settled.
    """
    freed = tuple(
        forget_claims(forget_merged_pgs(let_go(drain, view), view), view, drains) for drain in drains
    )
    folded = fold_base_pairs(view, freed)
    without: ClusterView | None = None
    followed: list[Drain] = []
    for before, after in zip(drains, folded, strict=True):
        new = after
        if _follows_upmaps(after, view) and any(pinned(after.saved).values()):
            without = without or undo_weights(view, folded)
            new = forget_void_pairs(after, without)
        followed.append(before if new is before else replace(new, revision=before.revision + 1))
    return tuple(followed)


def forget_merged_pgs(drain: Drain, view: ClusterView) -> Drain:
    """The drain without its claims to upmaps of PGs that are no more: their pool was deleted, or they were merged. A PG
    that gets the same name at a later split is another one, and has no upmaps.
    """
    gone = {pg for pg in {*pinned(drain.saved), *pinned(drain.ours)} if not _is_in_a_pool(view, pg)}
    if not gone:
        return drain
    saved, ours = (
        {key: value for key, value in values.items() if _find_pg(key) not in gone}
        for values in (drain.saved, drain.ours)
    )
    return replace(drain, saved=saved, ours=ours)


def _is_in_a_pool(view: ClusterView, pg: PgId) -> bool:
    pool, seed = pg_seed(pg)
    return pool in view.pools and seed < view.pools[pool].pg_num


def _find_pg(key: Setting) -> PgId | None:
    """The PG of an upmap, or of what stood there before."""
    named = key.setting if isinstance(key, Before) else key
    return named.pg if isinstance(named, UpmapItem) else None


def forget_claims(drain: Drain, view: ClusterView, drains: Iterable[Drain]) -> Drain:
    """A cancelled drain without its claims to upmaps that it left for others and that stand no more, or for drains that
    are over by now.
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
    return drain if ours == drain.ours else replace(drain, ours=ours)


def fold_base_pairs(view: ClusterView, drains: tuple[Drain, ...]) -> tuple[Drain, ...]:
    """The drains with what became of the pairs that others had left on their PGs, in the order that they came in.

    The mon tidied such a pair where CRUSH does not choose its source by now, or where it drops the whole list: it comes
    back when the drain is cancelled. Another hand took off one that could stand: it does not, for none of the drains.
    This is to be asked at every look, since a pair that the mon tidied may be one that could stand again, later.
    """
    writers: dict[PgId, list[Drain]] = {}
    for drain in drains:
        for pg in pinned(drain.ours):
            writers.setdefault(pg, []).append(drain)
    living = [drain for drain in drains if _follows_upmaps(drain, view)]
    gone = {drain.id: _find_gone_pairs(drain, view, writers) for drain in living}
    taken: dict[PgId, set[Pair]] = {}
    for drain in living:
        lost = gone[drain.id]
        could_stand = find_kept_pairs(view, {pg: read_pairs(drain.ours[UpmapItem(pg)]) for pg in lost})
        for pg, pairs in lost.items():
            taken.setdefault(pg, set()).update(pairs & set(could_stand[pg]))
    arrived = {
        pg: found(view, UpmapItem(pg))
        for pg, claiming in writers.items()
        if any(_wrote(drain.ours.get(UpmapItem(pg)), view.upmap_items.get(pg, ())) for drain in claiming)
    }
    return tuple(
        _fold_drain(drain, view, gone[drain.id], taken, arrived) if drain.id in gone else drain
        for drain in drains
    )


def _follows_upmaps(drain: Drain, view: ClusterView) -> bool:
    return drain.state not in ENDED or stands_empty(drain, view)


def _find_gone_pairs(
    drain: Drain, view: ClusterView, writers: Mapping[PgId, Collection[Drain]]
) -> dict[PgId, set[Pair]]:
    """Pairs of others, by PG, that the drain left standing and the map does not show, though no drain took them off."""
    return {
        pg: lost
        for pg, pairs in pinned(drain.ours).items()
        if pg in view.pgs
        and (now := set(view.upmap_items.get(pg, ()))) < set(pairs)
        and not any(_did_write(writer, pg, now) for writer in writers[pg])
        and (lost := set(read_pairs(drain.saved.get(UpmapItem(pg), ""))) & set(pairs) - now)
    }


def _did_write(drain: Drain, pg: PgId, pairs: Collection[Pair]) -> bool:
    """Whether these are the pairs that a drain wrote last, or wrote before a last command that did not arrive."""
    wrote = (drain.ours.get(UpmapItem(pg)), drain.ours.get(Before(UpmapItem(pg))))
    return any(_wrote(text, pairs) for text in wrote)


def _wrote(text: str | None, pairs: Collection[Pair]) -> bool:
    return text is not None and set(read_pairs(text)) == set(pairs)


def _fold_drain(
    drain: Drain,
    view: ClusterView,
    gone: Collection[PgId],
    taken: Mapping[PgId, Collection[Pair]],
    arrived: Mapping[PgId, str],
) -> Drain:
    """The drain with what the map shows: `gone` lists lost pairs, of `taken` another hand took some, `arrived` ones are
    as a drain wrote them. All drains that claim a PG go on to claim the list that one of them wrote last.
    """
    saved, ours = dict(drain.saved), dict(drain.ours)
    for pg, pairs in pinned(drain.ours).items():
        key = UpmapItem(pg)
        theirs = read_pairs(drain.saved.get(key, ""))
        if not theirs:
            continue  # of no use to anybody else
        if pg in gone:
            ours[key] = found(view, key)
            ours.pop(Before(key), None)
        elif pg in arrived and _wrote(arrived[pg], pairs):
            ours.pop(Before(key), None)  # from now on a pair that is gone was taken off
        elif pg in arrived and Before(key) not in ours:
            ours[key] = arrived[pg]
        elif not pairs and Before(key) not in ours and view.upmap_items.get(pg) == theirs:
            ours[key] = drain.saved[
                key
            ]  # a weight was to make it void, and did not: it stands as it was found
        if pg in taken:
            saved[key] = write_pairs(tuple(pair for pair in theirs if pair not in taken[pg]))
    if (saved, ours) == (drain.saved, drain.ours):
        return drain
    return replace(drain, saved=saved, ours=ours)


def forget_void_pairs(drain: Drain, without: ClusterView) -> Drain:
    """The drain without those pairs of others that the mon would have taken away in `without`, the view without any
    drain's weights. Their target was marked out, say, while its host was down; the mon does not put them back. A list
    that names an OSD which is in the map no more stays: the end of a cancel tells of it.
    """
    pins = {
        pg: pairs
        for pg, pairs in pinned(drain.saved).items()
        if pairs and pg in without.pgs and all(has_both_osds(without, pair) for pair in pairs)
    }
    kept = find_kept_pairs(without, pins)
    void: dict[Setting, str] = {
        UpmapItem(pg): write_pairs(kept[pg]) for pg, pairs in pins.items() if kept[pg] != pairs
    }
    return replace(drain, saved={**drain.saved, **void}) if void else drain


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
