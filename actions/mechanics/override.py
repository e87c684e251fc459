"""The override reweight in rungs: as a ladder that moves data, and as the last touch of a walk, which
moves none.

CRUSH rejects an OSD for a PG when the PG's draw is not below the override (`is_out`), so the PGs that a rung
changes are known beforehand, and a rung is chosen by how many PGs may peer, not by a fixed step.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from predrain.actions.cluster.port import Command, RemoveUpmap, Reweight
from predrain.actions.cluster.view import ClusterView, Pg
from predrain.actions.core.claimed_settings import found, pinned, same
from predrain.actions.core.in_flight import Allowance
from predrain.actions.core.pg_survey import whole
from predrain.actions.core.situation import Context
from predrain.actions.core.verdicts import count
from predrain.actions.crush.choose import CannotPlace
from predrain.actions.crush.hashing import hash2
from predrain.actions.crush.raw_sets import find_placement_seeds
from predrain.actions.mechanics.batch import Bound, CommandBatch, bound_for, list_servers, pin, serving
from predrain.actions.mechanics.void import void
from predrain.actions.placement.failure_domains import domains, pairs_for
from predrain.actions.placement.what_if import can_upmap, compute_present_up, placed
from predrain.data.drain import Drain, Move
from predrain.data.ids import OsdId, PgId, pg_seed
from predrain.data.setting import UpmapItem

FULL = 65536
_CHUNK = 1024
"""PGs that are placed at once when those that a rung takes back are sought."""
_BESIDE = "another drain's step in this look is on the same PGs"


def draws(view: ClusterView, osd: OsdId, pgs: Collection[PgId]) -> dict[PgId, int]:
    """Each PG's draw in [0, 65535] against the OSD's override: the OSD is out for it unless draw <
    override * 65536.
    """
    by_pool: dict[int, list[tuple[int, PgId]]] = {}
    for pg in pgs:
        pool, seed = pg_seed(pg)
        by_pool.setdefault(pool, []).append((seed, pg))
    found: dict[PgId, int] = {}
    for pool, rows in by_pool.items():
        seeds = find_placement_seeds(view.pools[pool], np.array([seed for seed, _ in rows], dtype=np.int64))
        hashes = hash2(seeds.astype(np.uint32), np.full(len(rows), osd, dtype=np.uint32))
        found.update((pg, int(drawn) & 0xFFFF) for (_, pg), drawn in zip(rows, hashes.tolist(), strict=True))
    return found


def rung_down(drawn: Mapping[PgId, int], now: float, goal: float, allowed: int) -> float:
    """The lowest override from `now` to `goal` that turns away at most `allowed` PGs of `drawn` (one,
    or those that drew the same, at least).
    """
    goal_grain = round(goal * FULL)
    turned = sorted((d for d in drawn.values() if goal_grain <= d < round(now * FULL)), reverse=True)
    if len(turned) <= allowed:
        return goal
    return turned[_break(turned, allowed) - 1] / FULL


def rung_up(drawn: Mapping[PgId, int], now: float, goal: float, allowed: int) -> float:
    """The highest override from `now` to `goal` that takes back at most `allowed` PGs of `drawn` (one,
    or those that drew the same, at least).
    """
    taken = sorted(d for d in drawn.values() if round(now * FULL) <= d < round(goal * FULL))
    if len(taken) <= allowed:
        return goal
    return (taken[_break(taken, allowed) - 1] + 1) / FULL


def _break(drawn: Sequence[int], allowed: int) -> int:
    """How many of `drawn` go first, at most `allowed`: PGs of equal draw cannot be parted, so a tie waits whole."""
    for size in range(max(allowed, 1), 0, -1):
        if size == len(drawn) or drawn[size - 1] != drawn[size]:
            return size
    return next((i for i in range(1, len(drawn)) if drawn[i] != drawn[i - 1]), len(drawn))


def next_rung(
    view: ClusterView, osd: OsdId, allowance: Allowance, starts: int, goal: float = 0.0
) -> CommandBatch:
    """The ladder: the next rung towards `goal` moves up to `starts` PGs off the OSD, where upmap is not to be had."""
    if starts < 1:
        return CommandBatch(waits_for="the budget is in use")
    present = {id_: up for id_, up in compute_present_up(view, view.pgs).items() if osd in up}
    on_it = present.keys()
    now = view.osds[osd].reweight
    weight = rung_down(draws(view, osd, on_it), now, goal, starts)
    after = placed(view, (), on_it, weights={osd: weight})
    pgs = frozenset(pg for pg in on_it if after[pg] != present[pg])
    held = _find_pinned_to(view, osd, pgs) if weight == 0.0 and can_upmap(view) else frozenset()
    without = replace(
        view, upmap_items={pg: pairs for pg, pairs in view.upmap_items.items() if pg not in held}
    )
    commands: list[Command] = []
    if held and len(pgs) > starts:
        pgs = frozenset(sorted(held)[:starts])
        decided = f"upmaps to osd.{osd} off {count(len(pgs), 'PG')}"
        after = placed(without, (), pgs)
    else:
        after |= placed(without, (), held, weights={osd: weight})
        told = list_servers(view, {id_: after[id_] for id_ in pgs - held})
        commands.append(Reweight(osd, weight, told))
        decided = f"override of osd.{osd} {now:.4f} > {weight:.4f}, {count(len(pgs), 'PG')}"
    if len(pgs) > starts and allowance.taken:
        return CommandBatch(waits_for="PGs that only move together wait for the whole budget")
    if pgs & allowance.taken:
        return CommandBatch(waits_for=_BESIDE)
    for id_ in pgs:
        pg = view.pgs[id_]
        if id_ in held and not whole(after[id_], view.pools[pg.pool].size):
            return CommandBatch(waits_for=f"without its upmap to osd.{osd}, PG {id_} would not be whole")
        bound = bound_for(view, pg, after[id_])
        if not all(allowance.room.fits(*to) for to in bound):
            return CommandBatch(outdated=True)
        allowance.send(id_, bound)
    dropped = (RemoveUpmap(id_, serving(view, view.pgs[id_], after[id_])) for id_ in sorted(held & pgs))
    return CommandBatch((*dropped, *commands), pgs, decided)


def _find_pinned_to(view: ClusterView, osd: OsdId, pgs: Collection[PgId]) -> frozenset[PgId]:
    """PGs whose upmaps send a shard to the OSD: the mon drops all upmaps of such a PG once the OSD is out, however the
    PG draws, so that more PGs would move than the override turns away (OSDMap::check_pg_upmaps).
    """
    return frozenset(pg for pg in pgs if any(target == osd for _, target in view.upmap_items.get(pg, ())))


def finish(view: ClusterView, osd: OsdId, allowance: Allowance) -> CommandBatch:
    """The end of a walk: override towards 0, no more PGs a rung than may peer, each kept where it is.

    A PG that was sent elsewhere than CRUSH would (a full target) needs its pin from CRUSH's choice instead of
    from the suspect; it can only be set once the suspect is out for that PG, so it goes in the same step.
    """
    if allowance.peering < 1:
        return CommandBatch(waits_for="PGs still peer")
    now = view.osds[osd].reweight
    pins = [pg for pg, pairs in view.upmap_items.items() if any(old == osd for old, _ in pairs)]
    final, present = placed(view, (osd,), pins), compute_present_up(view, pins)
    changed = [pg for pg in pins if final[pg] != present[pg]]
    stirred = [pg for pg in changed if pg not in allowance.taken]
    weight = rung_down(draws(view, osd, stirred), now, 0.0, allowance.peering)
    # A PG that another drain has pinned in this look hangs on the suspect still: it must not be turned away as well.
    busy = draws(view, osd, allowance.taken & set(changed)).values()
    weight = max((weight, *((drawn + 1) / FULL for drawn in busy if drawn < round(now * FULL))))
    if weight >= now and now > 0:
        return CommandBatch(waits_for=_BESIDE)
    after = placed(view, (), stirred, weights={osd: weight})
    pgs = [pg for pg in stirred if after[pg] != present[pg]]
    if len(pgs) > allowance.peering and allowance.taken:
        return CommandBatch(waits_for="PGs that only peer together wait for the whole budget")
    moved = [pg for pg in pgs if _elsewhere(view, pg, present[pg], after[pg])]
    raw = placed(view, (), moved, pinned=False, weights={osd: weight}) if moved else {}
    commands: list[Command] = [Reweight(osd, weight)]
    leave: dict[PgId, Bound] = {}
    for id_ in moved:
        pg = view.pgs[id_]
        ordered = view.pools[pg.pool].erasure
        pairs = pairs_for(raw[id_], present[id_], view.upmap_items.get(id_, ()), ordered=ordered)
        if pairs is None:  # two shards changed places: no pin expresses it
            leave[id_] = bound_for(view, pg, after[id_])
        else:
            commands.append(pin(id_, pairs))
    if len(leave) > allowance.flights:
        return CommandBatch(waits_for="the budget is in use")
    for id_, targets in leave.items():  # one after the other: two may go to one OSD
        if not all(allowance.room.fits(*to) for to in targets):
            return CommandBatch(full=f"PG {id_} cannot be kept where it is, and its new place is too full")
        allowance.send(id_, targets)
    allowance.stir(pg for pg in pgs if pg not in leave)
    kept = f", {count(len(moved) - len(leave), 'PG')} kept by a new pin" if len(moved) > len(leave) else ""
    moves = f"{count(len(leave), 'PG')} as CRUSH wants" if leave else "none"
    return CommandBatch(
        tuple(commands),
        frozenset(pgs),
        f"override of osd.{osd} {now:.4f} > {weight:.4f}: {count(len(pgs), 'PG')} peer, {moves} moves{kept}",
    )


def keep_again(
    view: ClusterView, drain: Drain, context: Context, allowance: Allowance
) -> CommandBatch | None:
    """Pins of the last touch that did not come to stand: their PGs would leave the plan's target for CRUSH's choice.

    The process died, a halt came, or the mon dropped the pin, between an override and what it needs beside it. The
    target was over its limit when the plan passed it by, so the PG is pinned back to where its data lie.
    """
    restless = context.survey.restless
    astray = {
        move.pg: restless[move.pg]
        for move in (drain.plan.moves if drain.plan else ())
        if move.pg in restless
        and move.pg not in allowance.taken
        and _left(restless[move.pg], move)
        and _lost(view, drain, context, move)
    }
    chosen = [pg for pg in astray.values() if context.survey.is_whole(pg)][: max(0, allowance.peering)]
    if not chosen:
        return None
    raw = placed(view, (), [pg.id for pg in chosen], pinned=False)
    commands: list[Command] = []
    pgs: list[PgId] = []
    for pg in chosen:
        pool = view.pools[pg.pool]
        pairs = pairs_for(raw[pg.id], pg.acting, view.upmap_items.get(pg.id, ()), ordered=pool.erasure)
        if pairs and domains(view.crush, pool).legal(pg.acting):
            commands.append(pin(pg.id, pairs))
            pgs.append(pg.id)
    if not commands:
        return None
    allowance.stir(pgs)
    return CommandBatch(
        tuple(commands), frozenset(pgs), f"pin {', '.join(pgs)} again: the last pin does not stand"
    )


def _lost(view: ClusterView, drain: Drain, context: Context, move: Move) -> bool:
    """Whether this drain's pin of the PG does not stand, and it is not another drain that moved the PG on."""
    key = UpmapItem(move.pg)
    if key not in drain.ours or same(key, drain.ours[key], found(view, key)):
        return False
    return move.target not in context.draining() and not any(
        key in other.ours for other in context.drains if other.id != drain.id
    )


def _left(pg: Pg, move: Move) -> bool:
    """Whether the PG serves from the plan's target, and the map wants it neither there nor back on the suspect."""
    wanted = move.source in pg.up or move.target in pg.up
    return not wanted and move.target in pg.acting and move.source not in pg.acting and "active" in pg.states


def give_back(
    view: ClusterView,
    drain: Drain,
    osd: OsdId,
    goal: float,
    allowance: Allowance,
    starts: int,
    *,
    idle: bool,
    pins: Collection[PgId] = (),
) -> CommandBatch:
    """The way back of a cancelled drain: override towards what it was, a few PGs a rung; those that only come back
    together when nothing else is on its way (`idle`).

    pins: PGs whose pins the drain has to give back, which it does before they are void (`CommandBatch.unpin`).
    """
    own = {move.pg for move in drain.plan.moves} if drain.plan else set()
    own = {pg for pg in own | pinned(drain.saved).keys() if pg in view.pgs}
    now = view.osds[osd].reweight
    stirred = _find_returning(view, osd, own, goal, starts)
    if stirred and starts < 1:
        return CommandBatch(waits_for="the budget is in use")
    weight = rung_up(draws(view, osd, stirred), now, goal, starts)
    after = _returned(view, osd, stirred, weight)
    present = compute_present_up(view, stirred)
    pgs = frozenset(pg for pg in stirred if after[pg] != present[pg])
    if len(pgs) > starts and (allowance.taken or not idle):
        return CommandBatch(waits_for="PGs that only move together wait for the whole budget")
    if pgs & allowance.taken:
        return CommandBatch(waits_for=_BESIDE)
    fallen = void(view, {pg: after[pg] for pg in pgs})
    try:
        after |= placed(view, (), fallen, pinned=False, weights={osd: weight})
    except CannotPlace:
        fallen = frozenset()  # what was guessed condemns no pin
    if unpin := fallen & frozenset(pins):
        return CommandBatch(unpin=unpin)
    for id_ in pgs:
        pg = view.pgs[id_]
        bound = bound_for(view, pg, after[id_])
        untold = now == 0.0  # of an OSD that is out no sizes are told
        if not all(allowance.room.fits(o, size) for o, size in bound if o != osd or not untold):
            return CommandBatch(
                full=f"PG {id_} stays where it is: where CRUSH would take it is too full by now"
            )
        allowance.send(id_, bound)
    told = {id_: after[id_] for id_ in pgs - fallen}
    return CommandBatch(
        (*map(RemoveUpmap, sorted(fallen)), Reweight(osd, weight, list_servers(view, told))),
        pgs,
        f"override of osd.{osd} {now:.4f} > {weight:.4f}, {count(len(pgs), 'PG')} back",
    )


def _find_returning(
    view: ClusterView, osd: OsdId, own: Collection[PgId], goal: float, allowed: int
) -> frozenset[PgId]:
    """PGs that an override of `goal` takes to the OSD: of all PGs of the cluster, for CRUSH may have changed since the
    plan, those with the lowest draws, more than `allowed` where there are so many. Each draws by itself, so that a
    rung below the first of those that are left out changes no other PG.
    """
    low, high = (round(at * FULL) for at in (view.osds[osd].reweight, goal))
    drawn = sorted((d, pg) for pg, d in draws(view, osd, view.pgs.keys()).items() if low <= d < high)
    found: set[PgId] = set()
    at, size = 0, _CHUNK
    while at < len(drawn) and len(found) <= allowed:
        end = min(at + size, len(drawn))
        while end < len(drawn) and drawn[end][0] == drawn[end - 1][0]:
            end += 1  # PGs of equal draw go together
        chunk = [pg for _, pg in drawn[at:end]]
        try:
            final = placed(view, (), chunk, weights={osd: goal})
        except CannotPlace:
            final, present = _returned(view, osd, own, goal), compute_present_up(view, own)
            return frozenset(pg for pg in own if final[pg] != present[pg])
        present = compute_present_up(view, chunk)
        found.update(pg for pg in chunk if final[pg] != present[pg])
        at, size = end, 2 * size
    return frozenset(found)


def _returned(
    view: ClusterView, osd: OsdId, pgs: Collection[PgId], weight: float
) -> dict[PgId, tuple[int, ...]]:
    """`up` of `pgs` with the override raised to `weight`. Where the map cannot be computed, the most that can come
    back: each that draws below it; a weight is given back all the same, in rungs that are small enough.
    """
    try:
        return placed(view, (), pgs, weights={osd: weight})
    except CannotPlace:
        low, high = (round(at * FULL) for at in (view.osds[osd].reweight, weight))
        ups = compute_present_up(view, pgs)
        taken = {
            pg for pg, drawn in draws(view, osd, pgs).items() if low <= drawn < high and osd not in ups[pg]
        }
        return {pg: (*up[:-1], osd) if pg in taken else up for pg, up in ups.items()}


def _elsewhere(view: ClusterView, pg: PgId, now: tuple[int, ...], after: tuple[int, ...]) -> bool:
    return after != now if view.pools[view.pgs[pg].pool].erasure else set(after) != set(now)
