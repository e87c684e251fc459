"""The ladder by CRUSH weight, for cases where an override leaves CRUSH no legal choice or data should stay in
the host.

A CRUSH weight also changes the sums of the buckets above, so other OSDs' PGs may move. Every step is computed
on the whole map first, and refused if any PG of it would not be whole (ceph.md d).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from predrain.actions.cluster.cluster_port import Command, CrushReweight, RemoveUpmap
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.in_flight import Allowance
from predrain.actions.core.pg_survey import has_all_members
from predrain.actions.mechanics.step_batch import CommandBatch, bound_for, list_servers
from predrain.actions.placement.what_if import (
    apply_crush_weights,
    compute_present_up,
    compute_up_sets,
    find_void_upmaps,
    find_weight_affected_pgs,
    has_weight_sets,
)
from predrain.data.ids import OsdId, PgId
from predrain.data.messages import WEIGHT_SETS, format_count

GRAIN = 1 / 65536


def build_weight_step(
    view: ClusterView,
    osd: OsdId,
    goal: float,
    allowance: Allowance,
    starts: int,
    *,
    idle: bool,
    affected: Collection[PgId] = (),
    unclean: Collection[PgId] | None = None,
    mapped_pgs: Collection[PgId] = (),
) -> CommandBatch:
    """Return the next CRUSH weight towards `goal`, up or down, that moves at most `starts` PGs, each to where
    it fits.

    `idle`: nothing else is on its way; PGs that can only move together wait for that. `affected`: PGs that the
    weight can move at all (`Plan.affected_pgs`); if not given, one pass over the map finds them. `unclean`: PGs
    that are not at rest, if known; the pass is much faster then. `mapped_pgs`: PGs whose upmap items the drain must
    give back before a weight makes them void (`CommandBatch.unpin`).
    """
    if starts < 1:
        return CommandBatch(waits_for="the budget is in use")
    now = view.osds[osd].crush_weight
    if goal < now and has_weight_sets(view):
        return CommandBatch(waits_for=f"{WEIGHT_SETS}; remove them, or cancel the drain")
    candidates = {pg for pg in affected if pg in view.pgs} or find_weight_affected_pgs(
        view, (osd,), {osd: goal}, unclean
    )

    def may_go(moved: Mapping[PgId, tuple[int, ...]]) -> bool:
        return len(moved) <= starts and _find_full(view, osd, moved, allowance) is None

    weight, moved = goal, _find_moved_pgs(view, osd, goal, candidates)
    if not may_go(moved):
        low, high, best = 0, round(abs(goal - now) / GRAIN), moved
        guess = max(1, min(high // 2, high * starts // len(moved)))
        while high - low > 1:  # invariant: a change of `low` grains may go, a change of `high` grains may not
            tried = _find_moved_pgs(view, osd, _shift_weight_by_grains(now, goal, guess), candidates)
            if may_go(tried):
                low = guess
            else:
                high, best = guess, tried
            if low == guess and len(tried) == starts:
                break
            guess = (low + high) // 2
        weight = _shift_weight_by_grains(now, goal, low or high)
        moved = _find_moved_pgs(view, osd, weight, candidates) if low else best
    if len(moved) > starts and (allowance.taken or not idle):
        return CommandBatch(waits_for="PGs that only move together wait for the whole budget")
    if moved.keys() & allowance.taken:
        return CommandBatch(waits_for="another drain's step in this poll is on the same PGs")
    fallen = find_void_upmaps(view, moved)
    if restore_first := fallen & frozenset(mapped_pgs):
        return CommandBatch(restore_first=restore_first)
    moved |= compute_up_sets(
        view, (), fallen, with_upmaps=False, crush=apply_crush_weights(view, {osd: weight})
    )
    for id_, want in moved.items():
        pg = view.pgs[id_]
        if not has_all_members(want, view.pools[pg.pool].size):
            return CommandBatch(waits_for=f"at CRUSH weight {weight:.4f} PG {id_} would not be whole")
    if _find_full(view, osd, moved, allowance) is not None:
        return CommandBatch(outdated=True)
    for id_, want in moved.items():
        allowance.reserve_move(id_, bound_for(view, view.pgs[id_], want))
    decided = f"CRUSH weight of osd.{osd} {now:.4f} > {weight:.4f}, {format_count(len(moved), 'PG')}"
    commands: tuple[Command, ...] = (
        *map(RemoveUpmap, sorted(fallen)),
        CrushReweight(osd, weight, list_servers(view, {id_: moved[id_] for id_ in moved.keys() - fallen})),
    )
    return CommandBatch(commands, frozenset(moved), decided)


def _find_full(
    view: ClusterView, osd: OsdId, moved: Mapping[PgId, tuple[int, ...]], allowance: Allowance
) -> OsdId | None:
    """Return the first other OSD that has no capacity for what `moved` brings it, PG by PG; None if all of it
    fits.
    """
    coming: dict[OsdId, int] = {}
    for id_, want in moved.items():
        for target, size in bound_for(view, view.pgs[id_], want):
            coming[target] = coming.get(target, 0) + size
            if target != osd and not allowance.room.fits(target, coming[target]):
                return target
    return None


def _shift_weight_by_grains(now: float, goal: float, grains: int) -> float:
    return now - grains * GRAIN if goal < now else now + grains * GRAIN


def _find_moved_pgs(
    view: ClusterView, osd: OsdId, weight: float, candidates: Collection[PgId]
) -> dict[PgId, tuple[int, ...]]:
    """Return the PGs whose `up` would change with this CRUSH weight of the OSD, with that `up`."""
    after = compute_up_sets(view, (), candidates, crush=apply_crush_weights(view, {osd: weight}))
    present = compute_present_up(view, after)
    return {id_: want for id_, want in after.items() if want != present[id_]}
