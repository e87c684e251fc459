"""Ladder by CRUSH weight: where the override would leave CRUSH without a legal choice, or data should
stay inside the host.

A CRUSH weight also shifts the sums of the buckets above, so bystanders may move; every rung is computed on
the whole map first and refused when any PG of it would not be whole (ceph.md d).
"""

from __future__ import annotations

from collections.abc import Collection

from actions.cluster.port import CrushReweight
from actions.cluster.view import ClusterView
from actions.flight import Allowance
from actions.foresight import Placement, placed, stirred_by, weighed
from actions.guards.verdict import count
from actions.mechanics.batch import Batch, bound_for
from actions.survey import whole
from actions.topology import domains
from data.ids import OsdId, PgId

GRAIN = 1 / 65536


def next_rung(
    view: ClusterView,
    osd: OsdId,
    goal: float,
    allowance: Allowance,
    starts: int,
    pinned: Collection[PgId] = (),
) -> Batch:
    """The next CRUSH weight from now towards `goal` (up or down) that moves no more than `starts` PGs.

    pinned: PGs whose pins the drain may give back. Beside CRUSH's new choice a pin may put two shards into one failure
    domain; the mon drops such a pin, seconds after the PG has peered so, and another OSD than was computed fills.
    """
    if starts < 1:
        return Batch(waits_for="the budget is in use")
    now = view.osds[osd].crush_weight
    candidates = stirred_by(view, (osd,), {osd: goal})
    weight, moved = goal, _moved(view, osd, goal, candidates)
    if len(moved) > starts:
        low, high, best = 0, round(abs(goal - now) / GRAIN), moved
        guess = max(1, high * starts // len(moved))
        while high - low > 1:  # invariant: `low` grains of change move at most `starts` PGs, `high` move more
            tried = _moved(view, osd, _at(now, goal, guess), candidates)
            if len(tried) <= starts:
                low = guess
            else:
                high, best = guess, tried
            if low and len(tried) == starts:
                break
            guess = (low + high) // 2
        weight = _at(now, goal, low or high)
        moved = _moved(view, osd, weight, candidates) if low else best
    if moved.keys() & allowance.taken:
        return Batch(waits_for="another drain's step in this look is on the same PGs")
    void = _void(view, moved)
    if unpin := void & frozenset(pinned):
        return Batch(unpin=unpin)
    crush = weighed(view, {osd: weight})
    moved |= placed(view, (), void, pinned=False, crush=crush)
    for id_, want in moved.items():
        pg = view.pgs[id_]
        if not whole(want, view.pools[pg.pool].size):
            return Batch(waits_for=f"at CRUSH weight {weight:.4f} PG {id_} would not be whole")
        bound = bound_for(view, pg, want)
        if not all(allowance.room.fits(target, size) for target, size in bound if target != osd):
            return Batch(outdated=True)
        allowance.send(id_, bound)
    decided = f"CRUSH weight of osd.{osd} {now:.4f} > {weight:.4f}, {count(len(moved), 'PG')}"
    return Batch((CrushReweight(osd, weight),), frozenset(moved), decided)


def _void(view: ClusterView, moved: Placement) -> frozenset[PgId]:
    """PGs whose pins the mon would drop: with them they would not lie as their rule wants."""
    regions = {pool: domains(view.crush, view.pools[pool]) for pool in {view.pgs[pg].pool for pg in moved}}
    return frozenset(
        pg
        for pg, want in moved.items()
        if view.upmap_items.get(pg) and not regions[view.pgs[pg].pool].legal(want)
    )


def _at(now: float, goal: float, grains: int) -> float:
    return now - grains * GRAIN if goal < now else now + grains * GRAIN


def _moved(
    view: ClusterView, osd: OsdId, weight: float, candidates: Collection[PgId]
) -> dict[PgId, tuple[int, ...]]:
    """PGs whose `up` would be another one, with it."""
    after = placed(view, (), candidates, crush=weighed(view, {osd: weight}))
    return {id_: want for id_, want in after.items() if want != view.pgs[id_].up}
