"""Steps of the override reweight: as a ladder that moves data, and as the end of a walk, which moves none.

CRUSH rejects an OSD for a PG if the PG's draw is not below the override (`is_out`). The PGs that a reweight
step changes are therefore known beforehand. The size of a step follows from the number of PGs that may peer;
it is not fixed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from predrain.actions.cluster.cluster_port import Command, RemoveUpmap, Reweight
from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.core.claimed_settings import (
    collect_upmap_items,
    is_same_setting_value,
    read_setting_value,
)
from predrain.actions.core.in_flight import Allowance
from predrain.actions.core.pg_survey import has_all_members
from predrain.actions.core.situation import Context
from predrain.actions.crush.crush_hash import hash_two_words
from predrain.actions.crush.crush_rules import CannotPlace
from predrain.actions.crush.raw_sets import find_placement_seeds
from predrain.actions.mechanics.step_batch import (
    Bound,
    CommandBatch,
    bound_for,
    build_upmap_command,
    choose_pg_temp_members,
    list_servers,
)
from predrain.actions.placement.failure_domains import find_failure_domains, pairs_for
from predrain.actions.placement.what_if import (
    can_upmap,
    compute_present_up,
    compute_up_sets,
    find_void_upmaps,
)
from predrain.data.drain import Drain, Move
from predrain.data.ids import OsdId, PgId, pg_seed
from predrain.data.messages import format_count
from predrain.data.setting import UpmapItem

FULL = 65536
_CHUNK = 1024
"""PGs placed at once in the search for those that a reweight step takes back."""
_BESIDE = "another drain's step in this poll is on the same PGs"


def compute_override_draws(view: ClusterView, osd: OsdId, pgs: Collection[PgId]) -> dict[PgId, int]:
    """Return each PG's draw in [0, 65535] against the OSD's override.

    The OSD is out for the PG unless draw < override * 65536.
    """
    by_pool: dict[int, list[tuple[int, PgId]]] = {}
    for pg in pgs:
        pool, seed = pg_seed(pg)
        by_pool.setdefault(pool, []).append((seed, pg))
    found: dict[PgId, int] = {}
    for pool, rows in by_pool.items():
        seeds = find_placement_seeds(view.pools[pool], np.array([seed for seed, _ in rows], dtype=np.int64))
        hashes = hash_two_words(seeds.astype(np.uint32), np.full(len(rows), osd, dtype=np.uint32))
        found.update((pg, int(drawn) & 0xFFFF) for (_, pg), drawn in zip(rows, hashes.tolist(), strict=True))
    return found


def choose_lower_weight(drawn: Mapping[PgId, int], now: float, goal: float, allowed: int) -> float:
    """Return the lowest override from `now` to `goal` that turns away at most `allowed` PGs of `drawn`.

    The step turns away at least one PG, with all PGs of the same draw.
    """
    goal_grain = round(goal * FULL)
    turned = sorted((d for d in drawn.values() if goal_grain <= d < round(now * FULL)), reverse=True)
    if len(turned) <= allowed:
        return goal
    return turned[_count_untied_draws(turned, allowed) - 1] / FULL


def choose_higher_weight(drawn: Mapping[PgId, int], now: float, goal: float, allowed: int) -> float:
    """Return the highest override from `now` to `goal` that takes back at most `allowed` PGs of `drawn`.

    The step takes back at least one PG, with all PGs of the same draw.
    """
    taken = sorted(d for d in drawn.values() if round(now * FULL) <= d < round(goal * FULL))
    if len(taken) <= allowed:
        return goal
    return (taken[_count_untied_draws(taken, allowed) - 1] + 1) / FULL


def _count_untied_draws(drawn: Sequence[int], allowed: int) -> int:
    """Return how many of `drawn` go first, at most `allowed`.

    PGs of equal draw cannot be separated, so a tie waits as a whole. If all first PGs tie, they go together.
    """
    for size in range(max(allowed, 1), 0, -1):
        if size == len(drawn) or drawn[size - 1] != drawn[size]:
            return size
    return next((i for i in range(1, len(drawn)) if drawn[i] != drawn[i - 1]), len(drawn))


def build_override_step(
    view: ClusterView, osd: OsdId, allowance: Allowance, starts: int, goal: float = 0.0
) -> CommandBatch:
    """Return the ladder's next step towards `goal`, which moves up to `starts` PGs off the OSD.

    The ladder is for clusters where upmap items cannot be used.
    """
    if starts < 1:
        return CommandBatch(waits_for="the budget is in use")
    present = {id_: up for id_, up in compute_present_up(view, view.pgs).items() if osd in up}
    on_it = present.keys()
    now = view.osds[osd].reweight
    weight = choose_lower_weight(compute_override_draws(view, osd, on_it), now, goal, starts)
    after = compute_up_sets(view, (), on_it, weights={osd: weight})
    pgs = frozenset(pg for pg in on_it if after[pg] != present[pg])
    held = _find_upmapped_pgs(view, osd, pgs) if weight == 0.0 and can_upmap(view) else frozenset()
    without = replace(
        view, upmap_items={pg: pairs for pg, pairs in view.upmap_items.items() if pg not in held}
    )
    commands: list[Command] = []
    if held and len(pgs) > starts:
        pgs = frozenset(sorted(held)[:starts])
        decided = f"upmaps to osd.{osd} off {format_count(len(pgs), 'PG')}"
        after = compute_up_sets(without, (), pgs)
    else:
        after |= compute_up_sets(without, (), held, weights={osd: weight})
        told = list_servers(view, {id_: after[id_] for id_ in pgs - held})
        commands.append(Reweight(osd, weight, told))
        decided = f"override of osd.{osd} {now:.4f} > {weight:.4f}, {format_count(len(pgs), 'PG')}"
    if len(pgs) > starts and allowance.taken:
        return CommandBatch(waits_for="PGs that only move together wait for the whole budget")
    if pgs & allowance.taken:
        return CommandBatch(waits_for=_BESIDE)
    for id_ in pgs:
        pg = view.pgs[id_]
        if id_ in held and not has_all_members(after[id_], view.pools[pg.pool].size):
            return CommandBatch(waits_for=f"without its upmap to osd.{osd}, PG {id_} would not be whole")
        bound = bound_for(view, pg, after[id_])
        if not all(allowance.room.fits(*to) for to in bound):
            return CommandBatch(outdated=True)
        allowance.reserve_move(id_, bound)
    dropped = (
        RemoveUpmap(id_, choose_pg_temp_members(view, view.pgs[id_], after[id_]))
        for id_ in sorted(held & pgs)
    )
    return CommandBatch((*dropped, *commands), pgs, decided)


def _find_upmapped_pgs(view: ClusterView, osd: OsdId, pgs: Collection[PgId]) -> frozenset[PgId]:
    """Return the PGs whose upmap items send a shard to the OSD.

    Once the OSD is out, the mon drops all upmap items of such a PG, for any draw of the PG. More PGs would
    then move than the override turns away (OSDMap::check_pg_upmaps).
    """
    return frozenset(pg for pg in pgs if any(target == osd for _, target in view.upmap_items.get(pg, ())))


def finish_walk_override(view: ClusterView, osd: OsdId, allowance: Allowance) -> CommandBatch:
    """Return the next step of the end of a walk: the override goes towards 0, and each PG stays where it is.

    A step changes no more PGs than may peer. A PG that was sent elsewhere than CRUSH would (because a target
    was full) needs an upmap item from CRUSH's choice instead of from the suspect. That item can only be set
    once the suspect is out for the PG, so it is part of the same step.
    """
    if allowance.peering < 1:
        return CommandBatch(waits_for="PGs still peer")
    now = view.osds[osd].reweight
    upmaps = [pg for pg, pairs in view.upmap_items.items() if any(old == osd for old, _ in pairs)]
    final, present = compute_up_sets(view, (osd,), upmaps), compute_present_up(view, upmaps)
    changed = [pg for pg in upmaps if final[pg] != present[pg]]
    affected = [pg for pg in changed if pg not in allowance.taken]
    weight = choose_lower_weight(compute_override_draws(view, osd, affected), now, 0.0, allowance.peering)
    # A PG that another drain mapped in this poll still depends on the suspect: it must not be turned away
    # too.
    busy = compute_override_draws(view, osd, allowance.taken & set(upmaps)).values()
    weight = max((weight, *((drawn + 1) / FULL for drawn in busy if drawn < round(now * FULL))))
    if weight >= now and now > 0:
        return CommandBatch(waits_for=_BESIDE)
    after = compute_up_sets(view, (), affected, weights={osd: weight})
    pgs = [pg for pg in affected if after[pg] != present[pg]]
    if len(pgs) > allowance.peering and allowance.taken:
        return CommandBatch(waits_for="PGs that only peer together wait for the whole budget")
    moved = [pg for pg in pgs if _is_placed_elsewhere(view, pg, present[pg], after[pg])]
    raw = compute_up_sets(view, (), moved, with_upmaps=False, weights={osd: weight}) if moved else {}
    commands: list[Command] = [Reweight(osd, weight)]
    leave: dict[PgId, Bound] = {}
    for id_ in moved:
        pg = view.pgs[id_]
        ordered = view.pools[pg.pool].erasure
        pairs = pairs_for(raw[id_], present[id_], view.upmap_items.get(id_, ()), ordered=ordered)
        if pairs is None:  # two shards changed places: no upmap item expresses it
            leave[id_] = bound_for(view, pg, after[id_])
        else:
            commands.append(build_upmap_command(id_, pairs))
    if len(leave) > allowance.flights:
        return CommandBatch(waits_for="the budget is in use")
    for id_, targets in leave.items():  # one after the other: two may go to one OSD
        if not all(allowance.room.fits(*to) for to in targets):
            return CommandBatch(full=f"PG {id_} cannot be kept where it is, and its new place is too full")
        allowance.reserve_move(id_, targets)
    allowance.reserve_peering(pg for pg in pgs if pg not in leave)
    kept = (
        f", {format_count(len(moved) - len(leave), 'PG')} kept in place by new upmap items"
        if len(moved) > len(leave)
        else ""
    )
    moves = f"{format_count(len(leave), 'PG')} as CRUSH wants" if leave else "none"
    return CommandBatch(
        tuple(commands),
        frozenset(pgs),
        f"override of osd.{osd} {now:.4f} > {weight:.4f}: {format_count(len(pgs), 'PG')} peer, {moves} moves{kept}",
    )


def keep_again(
    view: ClusterView, drain: Drain, context: Context, allowance: Allowance
) -> CommandBatch | None:
    """Return a step that sets lost upmap items of the end of a walk again; None if none is lost.

    Without its item a PG would leave the plan's target for CRUSH's choice. The item is missing because the
    process ended, a halt came, or the mon dropped it, between an override and the items that it needs.
    CRUSH's own target was over its limit when the plan passed it by, so the PG is mapped back to where its
    data is.
    """
    unclean = context.survey.unclean
    astray = {
        move.pg: unclean[move.pg]
        for move in (drain.plan.moves if drain.plan else ())
        if move.pg in unclean
        and move.pg not in allowance.taken
        and _is_serving_unmapped(unclean[move.pg], move)
        and _is_upmap_lost(view, drain, context, move)
    }
    chosen = [pg for pg in astray.values() if context.survey.is_whole(pg)][: max(0, allowance.peering)]
    if not chosen:
        return None
    raw = compute_up_sets(view, (), [pg.id for pg in chosen], with_upmaps=False)
    commands: list[Command] = []
    pgs: list[PgId] = []
    for pg in chosen:
        pool = view.pools[pg.pool]
        pairs = pairs_for(raw[pg.id], pg.acting, view.upmap_items.get(pg.id, ()), ordered=pool.erasure)
        if pairs and find_failure_domains(view.crush, pool).is_legal(pg.acting):
            commands.append(build_upmap_command(pg.id, pairs))
            pgs.append(pg.id)
    if not commands:
        return None
    allowance.reserve_peering(pgs)
    return CommandBatch(
        tuple(commands),
        frozenset(pgs),
        f"set the upmap items of {', '.join(pgs)} again: the last ones do not stand",
    )


def _is_upmap_lost(view: ClusterView, drain: Drain, context: Context, move: Move) -> bool:
    """Return whether this drain's upmap item of the PG is gone, and no other drain moved the PG on."""
    key = UpmapItem(move.pg)
    if key not in drain.ours or is_same_setting_value(key, drain.ours[key], read_setting_value(view, key)):
        return False
    return move.target not in context.list_draining_osds() and not any(
        key in other.ours for other in context.drains if other.id != drain.id
    )


def _is_serving_unmapped(pg: Pg, move: Move) -> bool:
    """Return whether the PG serves from the plan's target, while the map places it neither there nor on the
    suspect.
    """
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
    mapped_pgs: Collection[PgId] = (),
) -> CommandBatch:
    """Return the next step back of a cancelled drain: its override goes towards the found value, a few PGs in
    each step.

    `idle`: nothing else is on its way; PGs that can only come back together wait for that. `mapped_pgs`: PGs whose
    upmap items the drain must give back before a weight makes them void (`CommandBatch.unpin`).
    """
    own = {move.pg for move in drain.plan.moves} if drain.plan else set()
    own = {pg for pg in own | collect_upmap_items(drain.saved).keys() if pg in view.pgs}
    now = view.osds[osd].reweight
    affected = _find_returning(view, osd, own, goal, starts)
    if affected and starts < 1:
        return CommandBatch(waits_for="the budget is in use")
    weight = choose_higher_weight(compute_override_draws(view, osd, affected), now, goal, starts)
    after = _compute_raised_up_sets(view, osd, affected, weight)
    present = compute_present_up(view, affected)
    pgs = frozenset(pg for pg in affected if after[pg] != present[pg])
    if len(pgs) > starts and (allowance.taken or not idle):
        return CommandBatch(waits_for="PGs that only move together wait for the whole budget")
    if pgs & allowance.taken:
        return CommandBatch(waits_for=_BESIDE)
    fallen = find_void_upmaps(view, {pg: after[pg] for pg in pgs})
    try:
        after |= compute_up_sets(view, (), fallen, with_upmaps=False, weights={osd: weight})
    except CannotPlace:
        fallen = frozenset()  # a guess condemns no upmap item
    if restore_first := fallen & frozenset(mapped_pgs):
        return CommandBatch(restore_first=restore_first)
    for id_ in pgs:
        pg = view.pgs[id_]
        bound = bound_for(view, pg, after[id_])
        untold = now == 0.0  # the sizes of an OSD that is out are not known
        if not all(allowance.room.fits(o, size) for o, size in bound if o != osd or not untold):
            return CommandBatch(
                full=f"PG {id_} stays where it is: where CRUSH would take it is too full by now"
            )
        allowance.reserve_move(id_, bound)
    told = {id_: after[id_] for id_ in pgs - fallen}
    return CommandBatch(
        (*map(RemoveUpmap, sorted(fallen)), Reweight(osd, weight, list_servers(view, told))),
        pgs,
        f"override of osd.{osd} {now:.4f} > {weight:.4f}, {format_count(len(pgs), 'PG')} back",
    )


def _find_returning(
    view: ClusterView, osd: OsdId, own: Collection[PgId], goal: float, allowed: int
) -> frozenset[PgId]:
    """Return PGs that an override of `goal` takes to the OSD, lowest draws first, a few more than `allowed`
    if possible.

    All PGs of the cluster are searched, because CRUSH may have changed since the plan. Each PG draws by
    itself, so a step below the first PG left out changes no other PG.
    """
    low, high = (round(at * FULL) for at in (view.osds[osd].reweight, goal))
    drawn = sorted(
        (d, pg) for pg, d in compute_override_draws(view, osd, view.pgs.keys()).items() if low <= d < high
    )
    found: set[PgId] = set()
    at, size = 0, _CHUNK
    while at < len(drawn) and len(found) <= allowed:
        end = min(at + size, len(drawn))
        while end < len(drawn) and drawn[end][0] == drawn[end - 1][0]:
            end += 1  # PGs of equal draw go together
        chunk = [pg for _, pg in drawn[at:end]]
        try:
            final = compute_up_sets(view, (), chunk, weights={osd: goal})
        except CannotPlace:
            final, present = _compute_raised_up_sets(view, osd, own, goal), compute_present_up(view, own)
            return frozenset(pg for pg in own if final[pg] != present[pg])
        present = compute_present_up(view, chunk)
        found.update(pg for pg in chunk if final[pg] != present[pg])
        at, size = end, 2 * size
    return frozenset(found)


def _compute_raised_up_sets(
    view: ClusterView, osd: OsdId, pgs: Collection[PgId], weight: float
) -> dict[PgId, tuple[int, ...]]:
    """Return `up` of `pgs` with the override raised to `weight`.

    If the map cannot be computed, each PG that draws below the weight counts as coming back, which is the
    most that can come. The weight is then still given back, in steps that are small enough.
    """
    try:
        return compute_up_sets(view, (), pgs, weights={osd: weight})
    except CannotPlace:
        low, high = (round(at * FULL) for at in (view.osds[osd].reweight, weight))
        ups = compute_present_up(view, pgs)
        taken = {
            pg
            for pg, drawn in compute_override_draws(view, osd, pgs).items()
            if low <= drawn < high and osd not in ups[pg]
        }
        return {pg: (*up[:-1], osd) if pg in taken else up for pg, up in ups.items()}


def _is_placed_elsewhere(view: ClusterView, pg: PgId, now: tuple[int, ...], after: tuple[int, ...]) -> bool:
    return after != now if view.pools[view.pgs[pg].pool].erasure else set(after) != set(now)
