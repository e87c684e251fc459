"""Walk by upmap: PG by PG to exactly the place that the final map gives it; the override comes last and
moves nothing.

Source of the mechanic and its measurements: ceph.md c (`upmap_walk3`).
"""

from __future__ import annotations

from collections.abc import Sequence

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.capacity import remaining
from predrain.actions.core.in_flight import Allowance, in_flight
from predrain.actions.core.situation import Context
from predrain.actions.crush.map import ITEM_NONE
from predrain.actions.mechanics.batch import CommandBatch, pin, serving
from predrain.actions.placement.failure_domains import applied, domains, pairs_for
from predrain.actions.placement.what_if import placed
from predrain.data.drain import Drain, Move
from predrain.data.ids import OsdId, PgId


def next_pins(
    view: ClusterView, drain: Drain, osd: OsdId, context: Context, allowance: Allowance, starts: int
) -> CommandBatch:
    """Up to `starts` PGs of `osd`, in the plan's order, each pinned to its place."""
    routes: dict[PgId, list[Move]] = {}
    mine = {move.pg for move in remaining(view, drain) if move.source == osd}
    for move in remaining(view, drain):
        if move.pg in mine:
            routes.setdefault(move.pg, []).append(move)
    chosen: dict[PgId, tuple[Move, ...]] = {}
    arriving: dict[OsdId, int] = {}
    for id_, moves in routes.items():
        if len(chosen) >= starts:
            break
        if id_ in context.survey.restless or id_ in context.survey.broken or id_ in allowance.taken:
            continue  # it moves or peers already, for whatever reason, or is not whole
        if any(
            allowance.arriving.get(m.target, 0) + arriving.get(m.target, 0) >= allowance.per_target
            for m in moves
        ):
            continue
        for move in moves:
            arriving[move.target] = arriving.get(move.target, 0) + 1
        chosen[id_] = tuple(moves)
    if not chosen:
        return CommandBatch(waits_for="its next PGs are busy, or their targets are" if routes else "")
    raw = placed(view, (), chosen, pinned=False)
    commands, pgs = [], []
    for id_, sent in chosen.items():
        pg = view.pgs[id_]
        want = _replaced(pg.up, sent)
        pool = view.pools[pg.pool]
        pairs = pairs_for(raw[id_], want, view.upmap_items.get(id_, ()), ordered=pool.erasure)
        region = domains(view.crush, pool)
        if pairs is None or not region.legal(want):
            return CommandBatch(outdated=True)
        up = applied(raw[id_], pairs)
        if set(up) != set(want):
            return CommandBatch(outdated=True)
        if not all(allowance.room.fits(move.target, move.bytes) for move in sent):
            return CommandBatch(outdated=True)
        allowance.send(id_, ((move.target, move.bytes) for move in sent))
        commands.append(pin(id_, pairs, serving(view, pg, up)))
        pgs.append(id_)
    went = ", ".join(f"{m.pg} osd.{m.source}>osd.{m.target}" for sent in chosen.values() for m in sent)
    return CommandBatch(tuple(commands), frozenset(pgs), f"pin {went}")


def pull_back(view: ClusterView, drain: Drain, context: Context, allowance: Allowance) -> CommandBatch:
    """Pin PGs that still wait in `backfill_wait` back to where their data is: nothing of them has
    moved yet.
    """
    waiting = [
        pg
        for pg in in_flight(drain, context)
        if "backfill_wait" in pg.states
        and "backfilling" not in pg.states
        and set(pg.acting) & set(drain.osds)
        and ITEM_NONE not in pg.acting
        and pg.id not in allowance.taken
    ][: max(0, allowance.peering)]
    if not waiting:
        return CommandBatch(waits_for="nothing waits that could be taken back")
    raw = placed(view, (), [pg.id for pg in waiting], pinned=False)
    commands, pgs = [], []
    for pg in waiting:
        ordered = view.pools[pg.pool].erasure
        pairs = pairs_for(raw[pg.id], pg.acting, view.upmap_items.get(pg.id, ()), ordered=ordered)
        if pairs is not None:
            commands.append(pin(pg.id, pairs))
            pgs.append(pg.id)
    allowance.stir(pgs)
    return CommandBatch(tuple(commands), frozenset(pgs), f"take back {', '.join(pgs)} from backfill_wait")


def _replaced(up: Sequence[int], moves: tuple[Move, ...]) -> tuple[int, ...]:
    by_source = {int(move.source): int(move.target) for move in moves}
    return tuple(by_source.get(osd, osd) for osd in up)
