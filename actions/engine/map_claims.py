"""Follows the drains' claims on the map: values of others, claims that are void, pairs that another party
removed.

Each drain keeps the values that it found and the values that it wrote. The found value of a setting is the
same in every drain that claims it. When one drain learns of a change to others' pairs, the change holds for
all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.claimed_settings import (
    ABSENT,
    collect_upmap_items,
    is_explained_by_drain,
    is_ours,
    read_pairs,
    read_setting_value,
    write_pairs,
)
from predrain.actions.core.situation import stands_empty
from predrain.actions.core.state_machine import ENDED
from predrain.actions.placement.failure_domains import has_both_osds
from predrain.actions.placement.what_if import apply_crush_weights, find_kept_pairs
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import PgId, pg_seed
from predrain.data.setting import (
    OsdCrushWeight,
    OsdFlag,
    OsdOverride,
    Setting,
    UpmapItem,
    ValueBefore,
    strip_note,
)

Pair = tuple[int, int]


def follow_map(view: ClusterView, drains: tuple[Drain, ...]) -> tuple[Drain, ...]:
    """Return the drains with their claims updated by the map, each one revision on if anything changed.

    Claims to settings that are gone are dropped, and changes to others' upmap items are recorded. The map
    must have settled.
    """
    freed = tuple(
        forget_claims(forget_merged_pgs(let_go(drain, view), view), view, drains) for drain in drains
    )
    folded = hand_on_blocked_pairs(view, fold_base_pairs(view, freed))
    without: ClusterView | None = None
    followed: list[Drain] = []
    for before, after in zip(drains, folded, strict=True):
        new = after
        if _follows_upmaps(after, view) and any(collect_upmap_items(after.saved).values()):
            without = without or undo_weights(view, folded)
            new = forget_void_pairs(after, without)
        followed.append(before if new is before else replace(new, revision=before.revision + 1))
    return tuple(followed)


def let_go(drain: Drain, view: ClusterView) -> Drain:
    """Return the drain without its claims to flags that the map no longer shows. The map must have settled.

    The drain may have ended or not.
    """
    gone = {key for key in drain.ours if isinstance(key, OsdFlag) and read_setting_value(view, key) == "off"}
    if not gone:
        return drain
    ours = {key: value for key, value in drain.ours.items() if strip_note(key) not in gone}
    return replace(drain, ours=ours)


def forget_merged_pgs(drain: Drain, view: ClusterView) -> Drain:
    """Return the drain without its claims to upmap items of PGs that no longer exist.

    Their pool was deleted, or they were merged. If a later split creates a PG of the same name, it is another
    PG and has no upmap items.
    """
    gone = {
        key.pg
        for book in (drain.saved, drain.ours)
        for key in _list_upmap_keys(book)
        if not _is_in_a_pool(view, key.pg)
    }
    if not gone:
        return drain
    saved, ours = (
        {key: value for key, value in values.items() if _find_pg(key) not in gone}
        for values in (drain.saved, drain.ours)
    )
    return replace(drain, saved=saved, ours=ours)


def _list_upmap_keys(book: Mapping[Setting, str]) -> list[UpmapItem]:
    return [key for key in book if isinstance(key, UpmapItem)]


def _is_in_a_pool(view: ClusterView, pg: PgId) -> bool:
    pool, seed = pg_seed(pg)
    return pool in view.pools and seed < view.pools[pool].pg_num


def _find_pg(key: Setting) -> PgId | None:
    """Return the PG of an upmap item, or of a note on the item's former value."""
    named = key.setting if isinstance(key, ValueBefore) else key
    return named.pg if isinstance(named, UpmapItem) else None


def forget_claims(drain: Drain, view: ClusterView, drains: Iterable[Drain]) -> Drain:
    """Return a cancelled drain without claims to upmap items that it left for others and that no longer
    count.

    The map no longer shows such an item, or the drains that needed it have ended.
    """
    if drain.state is not DrainState.CANCELLED or not any(isinstance(key, UpmapItem) for key in drain.ours):
        return drain
    others = [other for other in drains if other.id != drain.id and other.state not in ENDED]
    ours = {
        key: value
        for key, value in drain.ours.items()
        if not isinstance(key, UpmapItem)
        or (read_setting_value(view, key) == value and any(key in other.ours for other in others))
    }
    return drain if ours == drain.ours else replace(drain, ours=ours)


def fold_base_pairs(view: ClusterView, drains: tuple[Drain, ...]) -> tuple[Drain, ...]:
    """Return the drains, in their order, with the changes to pairs that others had left on their PGs.

    The mon removed such a pair if CRUSH no longer chooses its source, or if it dropped the whole list. That
    pair comes back when the drain is cancelled. If the pair could stand, another party removed it, and it
    comes back for none of the drains. This check runs at every poll, since a pair that the mon removed may
    become one that could stand again.

    A list that no drain explains is another party's as a whole. It takes the place of what the drains found.
    """
    living = [drain for drain in drains if _follows_upmaps(drain, view)]
    writers: dict[PgId, list[Drain]] = {
        key.pg: [] for drain in living for key in _list_upmap_keys(drain.ours)
    }
    for drain in drains:
        for key in _list_upmap_keys(drain.ours):
            if (claiming := writers.get(key.pg)) is not None:  # drains that ended keep their claims for years
                claiming.append(drain)
    replaced = {pg for pg, claiming in writers.items() if pg in view.pgs and _is_replaced(pg, view, claiming)}
    gone = {drain.id: _find_gone_pairs(drain, view, writers) for drain in living}
    taken: dict[PgId, set[Pair]] = {}
    for drain in living:
        lost = gone[drain.id]
        could_stand = find_kept_pairs(view, {pg: read_pairs(drain.ours[UpmapItem(pg)]) for pg in lost})
        for pg, pairs in lost.items():
            taken.setdefault(pg, set()).update(pairs & set(could_stand[pg]))
    arrived = {
        pg: read_setting_value(view, UpmapItem(pg))
        for pg, claiming in writers.items()
        if any(
            _has_same_pairs(drain.ours.get(UpmapItem(pg)), view.upmap_items.get(pg, ())) for drain in claiming
        )
    }
    return tuple(
        _fold_drain(_follow_lists(drain, view, replaced), view, gone[drain.id], taken, arrived)
        if drain.id in gone
        else drain
        for drain in drains
    )


def hand_on_blocked_pairs(view: ClusterView, drains: tuple[Drain, ...]) -> tuple[Drain, ...]:
    """Return the drains, in their order, with the claims that drains on their way back hand on to others.

    A drain that is cancelled ends although the mon would drop pairs of another party that it found, because the
    weights of other drains forbid them now. These other drains claim the pairs from then on, and set them again when
    they are cancelled themselves.
    """
    returning = [drain for drain in drains if drain.state is DrainState.CANCELLING]
    holders = [drain for drain in drains if _holds_weight(drain) and _follows_upmaps(drain, view)]
    if not returning or {holder.id for holder in holders} <= {drain.id for drain in returning[:1]}:
        return drains  # no drain holds anything that another one wants back
    unweighted = undo_weights(view, holders)
    handed_on: dict[Setting, str] = {}
    for drain in returning:
        upmaps = {
            pg: pairs
            for pg, pairs in collect_upmap_items(drain.saved).items()
            if pairs
            and UpmapItem(pg) in drain.ours
            and pg in view.pgs
            and not set(pairs) <= set(view.upmap_items.get(pg, ()))
        }
        if not upmaps:
            continue
        returned = find_kept_pairs(undo_weights(view, (drain,)), upmaps)
        at_last = find_kept_pairs(unweighted, upmaps)
        for pg in upmaps:
            if set(at_last[pg]) - set(returned[pg]):
                handed_on[UpmapItem(pg)] = drain.saved[UpmapItem(pg)]
    heirs = {holder.id for holder in holders}
    return tuple(_take_over_pairs(drain, view, handed_on) if drain.id in heirs else drain for drain in drains)


def _holds_weight(drain: Drain) -> bool:
    return any(isinstance(key, OsdOverride | OsdCrushWeight) for key in drain.ours)


def _take_over_pairs(drain: Drain, view: ClusterView, handed_on: Mapping[Setting, str]) -> Drain:
    """Return the drain with claims to the lists that others hand on, as those drains found the lists."""
    fresh = {key: found for key, found in handed_on.items() if key not in drain.ours}
    if not fresh:
        return drain
    now = {key: read_setting_value(view, key) for key in fresh}
    return replace(drain, saved={**fresh, **drain.saved}, ours={**drain.ours, **now})


def _is_replaced(pg: PgId, view: ClusterView, claiming: Collection[Drain]) -> bool:
    """Return whether another party has written a list that neither the drains nor the mon's removals explain."""
    now = read_setting_value(view, UpmapItem(pg))
    return bool(now) and not is_ours(claiming, UpmapItem(pg), now)


def _follow_lists(drain: Drain, view: ClusterView, replaced: Collection[PgId]) -> Drain:
    """Return the drain with its claims to lists that are no longer its own, as another party's or as found.

    replaced: PGs whose list another party wrote; that list is what the drain found from now on. Where the list of
    a drain had arrived and the map shows again what the drain found, the mon or another party took it off: the
    same pairs, should they come again, are not the drain's. The claim itself stays, since it says which PGs the
    drain moves.
    """
    saved, ours = dict(drain.saved), dict(drain.ours)
    for pg, pairs in collect_upmap_items(drain.ours).items():
        key = UpmapItem(pg)
        if pg in replaced:
            saved[key] = ours[key] = read_setting_value(view, key)
            ours.pop(ValueBefore(key), None)
        elif pairs and pg in view.pgs and ValueBefore(key) not in ours:
            found = drain.saved.get(key, "")
            if set(read_pairs(found)) == set(view.upmap_items.get(pg, ())):
                ours[key] = found
    return drain if (saved, ours) == (drain.saved, drain.ours) else replace(drain, saved=saved, ours=ours)


def _follows_upmaps(drain: Drain, view: ClusterView) -> bool:
    return drain.state not in ENDED or stands_empty(drain, view)


def _find_gone_pairs(
    drain: Drain, view: ClusterView, writers: Mapping[PgId, Collection[Drain]]
) -> dict[PgId, set[Pair]]:
    """Find others' pairs, by PG, that the drain left standing and that the map does not show.

    Pairs that a drain removed are not among them.
    """
    return {
        pg: lost
        for pg, pairs in collect_upmap_items(drain.ours).items()
        if pg in view.pgs
        and (now := set(view.upmap_items.get(pg, ()))) < set(pairs)
        and not any(_did_write(writer, pg, now) for writer in writers[pg])
        and (lost := set(read_pairs(drain.saved.get(UpmapItem(pg), ""))) & set(pairs) - now)
    }


def _did_write(drain: Drain, pg: PgId, pairs: Collection[Pair]) -> bool:
    """Return whether a drain wrote these pairs last, or wrote them before a last command that did not arrive."""
    wrote = (drain.ours.get(UpmapItem(pg)), drain.ours.get(ValueBefore(UpmapItem(pg))))
    return any(_has_same_pairs(text, pairs) for text in wrote)


def _has_same_pairs(text: str | None, pairs: Collection[Pair]) -> bool:
    return text is not None and set(read_pairs(text)) == set(pairs)


def _fold_drain(
    drain: Drain,
    view: ClusterView,
    gone: Collection[PgId],
    taken: Mapping[PgId, Collection[Pair]],
    arrived: Mapping[PgId, str],
) -> Drain:
    """Return the drain updated by the map.

    gone: PGs whose lists lost pairs. taken: pairs that another party removed. arrived: PGs whose lists stand
    as a drain wrote them. All drains that claim a PG go on to claim the list that one of them wrote last.
    """
    saved, ours = dict(drain.saved), dict(drain.ours)
    for pg, pairs in collect_upmap_items(drain.ours).items():
        key = UpmapItem(pg)
        theirs = read_pairs(drain.saved.get(key, ""))
        if not theirs:
            continue  # no other drain uses it
        if pg in gone:
            ours[key] = read_setting_value(view, key)
            ours.pop(ValueBefore(key), None)
        elif pg in arrived and _has_same_pairs(arrived[pg], pairs):
            ours.pop(ValueBefore(key), None)  # from now on a missing pair means that another party removed it
        elif pg in arrived and ValueBefore(key) not in ours:
            ours[key] = arrived[pg]
        elif not pairs and ValueBefore(key) not in ours and view.upmap_items.get(pg) == theirs:
            ours[key] = drain.saved[key]  # a weight was to make it void, but it stands as found
        if pg in taken:
            saved[key] = write_pairs(tuple(pair for pair in theirs if pair not in taken[pg]))
    if (saved, ours) == (drain.saved, drain.ours):
        return drain
    return replace(drain, saved=saved, ours=ours)


def forget_void_pairs(drain: Drain, without: ClusterView) -> Drain:
    """Return the drain without those pairs of others that the mon would have removed anyway.

    without: the view without any drain's weights. For example, a pair's target was marked out while its host
    was down; the mon does not restore the pair. A list that names an OSD which is no longer in the map stays,
    and the end of a cancel reports it.
    """
    upmaps = {
        pg: pairs
        for pg, pairs in collect_upmap_items(drain.saved).items()
        if pairs and pg in without.pgs and all(has_both_osds(without, pair) for pair in pairs)
    }
    kept = find_kept_pairs(without, upmaps)
    void: dict[Setting, str] = {
        UpmapItem(pg): write_pairs(kept[pg]) for pg, pairs in upmaps.items() if kept[pg] != pairs
    }
    return replace(drain, saved={**drain.saved, **void}) if void else drain


def undo_weights(view: ClusterView, drains: Iterable[Drain]) -> ClusterView:
    """Return the view with the override and CRUSH weight that each OSD would have without `drains`."""
    base = {
        key: float(value)
        for drain in drains
        for key, value in drain.saved.items()
        if isinstance(key, OsdOverride | OsdCrushWeight)
        and value != ABSENT
        and key in drain.ours
        and is_explained_by_drain(drain, key, read_setting_value(view, key))
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
    return replace(view, osds=osds, crush=apply_crush_weights(view, changed))
