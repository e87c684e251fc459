"""Ladder by CRUSH weight: where the override would leave CRUSH without a legal choice, or data should
stay inside the host.

A CRUSH weight also shifts the sums of the buckets above, so bystanders may move; every rung is computed on
the whole map first and refused when any PG of it would not be whole (ceph.md d).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from predrain.actions.cluster.port import Command, CrushReweight, RemoveUpmap
from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.in_flight import Allowance
from predrain.actions.core.pg_survey import whole
from predrain.actions.core.verdicts import count
from predrain.actions.mechanics.batch import CommandBatch, bound_for, list_servers
from predrain.actions.mechanics.void import void
from predrain.actions.placement.what_if import (
    compute_present_up,
    placed,
    stirred_by,
    weighed,
    why_no_crush_weight,
)
from predrain.data.ids import OsdId, PgId

GRAIN = 1 / 65536


def next_rung(
    view: ClusterView,
    osd: OsdId,
    goal: float,
    allowance: Allowance,
    starts: int,
    *,
    idle: bool,
    stirred: Collection[PgId] = (),
    restless: Collection[PgId] | None = None,
    pins: Collection[PgId] = (),
) -> CommandBatch:
    """The next CRUSH weight from now towards `goal` (up or down) that moves no more than `starts` PGs, each to where
    there is room; those that only move together when nothing else is on its way (`idle`).

    stirred: PGs that the weight can move at all (`Plan.stirred`); found by one pass over the map where not given.
    restless: PGs that are not at rest, where that is known; the pass takes much less time then.
    pins: PGs whose pins the drain has to give back, which it does before they are void (`CommandBatch.unpin`).
    """
    if starts < 1:
        return CommandBatch(waits_for="the budget is in use")
    now = view.osds[osd].crush_weight
    if goal < now and (why := why_no_crush_weight(view)):
        return CommandBatch(waits_for=f"{why}; remove them, or cancel the drain")
    candidates = {pg for pg in stirred if pg in view.pgs} or stirred_by(view, (osd,), {osd: goal}, restless)

    def may_go(moved: Mapping[PgId, tuple[int, ...]]) -> bool:
        return len(moved) <= starts and _find_full(view, osd, moved, allowance) is None

    weight, moved = goal, _moved(view, osd, goal, candidates)
    if not may_go(moved):
        low, high, best = 0, round(abs(goal - now) / GRAIN), moved
        guess = max(1, min(high // 2, high * starts // len(moved)))
        while high - low > 1:  # invariant: what `low` grains of change move may go, what `high` move may not
            tried = _moved(view, osd, _at(now, goal, guess), candidates)
            if may_go(tried):
                low = guess
            else:
                high, best = guess, tried
            if low == guess and len(tried) == starts:
                break
            guess = (low + high) // 2
        weight = _at(now, goal, low or high)
        moved = _moved(view, osd, weight, candidates) if low else best
    if len(moved) > starts and (allowance.taken or not idle):
        return CommandBatch(waits_for="PGs that only move together wait for the whole budget")
    if moved.keys() & allowance.taken:
        return CommandBatch(waits_for="another drain's step in this look is on the same PGs")
    fallen = void(view, moved)
    if unpin := fallen & frozenset(pins):
        return CommandBatch(unpin=unpin)
    moved |= placed(view, (), fallen, pinned=False, crush=weighed(view, {osd: weight}))
    for id_, want in moved.items():
        pg = view.pgs[id_]
        if not whole(want, view.pools[pg.pool].size):
            return CommandBatch(waits_for=f"at CRUSH weight {weight:.4f} PG {id_} would not be whole")
    if _find_full(view, osd, moved, allowance) is not None:
        return CommandBatch(outdated=True)
    for id_, want in moved.items():
        allowance.send(id_, bound_for(view, view.pgs[id_], want))
    decided = f"CRUSH weight of osd.{osd} {now:.4f} > {weight:.4f}, {count(len(moved), 'PG')}"
    commands: tuple[Command, ...] = (
        *map(RemoveUpmap, sorted(fallen)),
        CrushReweight(osd, weight, list_servers(view, {id_: moved[id_] for id_ in moved.keys() - fallen})),
    )
    return CommandBatch(commands, frozenset(moved), decided)


def _find_full(
    view: ClusterView, osd: OsdId, moved: Mapping[PgId, tuple[int, ...]], allowance: Allowance
) -> OsdId | None:
    """The first other OSD that has no room for what `moved` brings it, PG by PG; None where all of it fits."""
    coming: dict[OsdId, int] = {}
    for id_, want in moved.items():
        for target, size in bound_for(view, view.pgs[id_], want):
            coming[target] = coming.get(target, 0) + size
            if target != osd and not allowance.room.fits(target, coming[target]):
                return target
    return None


def _at(now: float, goal: float, grains: int) -> float:
    return now - grains * GRAIN if goal < now else now + grains * GRAIN


def _moved(
    view: ClusterView, osd: OsdId, weight: float, candidates: Collection[PgId]
) -> dict[PgId, tuple[int, ...]]:
    """PGs whose `up` would be another one, with it."""
    after = placed(view, (), candidates, crush=weighed(view, {osd: weight}))
    present = compute_present_up(view, after)
    return {id_: want for id_, want in after.items() if want != present[id_]}
