"""The steps of a drain and of a fill: the OSD that is emptied or filled now, its mechanic's next commands, and the end
of an emptied disk.

In the walk by upmap items each PG goes to exactly the place that the final map gives it. The override comes last and
moves nothing. Source of that mechanic and its measurements: ceph.md c (`upmap_walk3`).
"""

from __future__ import annotations

from collections.abc import Sequence

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.capacity import list_remaining_moves
from predrain.actions.core.claimed_settings import (
    is_explained_by_drain,
    is_same_setting_value,
    read_setting_value,
)
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.in_flight import Allowance, in_flight, list_weight_affected_pgs
from predrain.actions.core.pacing import Pace
from predrain.actions.core.situation import Context
from predrain.actions.crush.crush_map import ITEM_NONE
from predrain.actions.mechanics import crush_removal, crush_weight_ladder, override_reweight
from predrain.actions.mechanics.desired_upmaps import find_stray_upmaps
from predrain.actions.mechanics.restore import release_strays
from predrain.actions.mechanics.step_batch import CommandBatch, build_upmap_command, choose_pg_temp_members
from predrain.actions.placement.failure_domains import apply_upmap_pairs, find_failure_domains, pairs_for
from predrain.actions.placement.what_if import compute_up_sets
from predrain.data.drain import Drain, Mechanic, Move, Plan
from predrain.data.ids import OsdId, PgId
from predrain.data.setting import OsdCrushWeight


def find_osd_to_empty(view: ClusterView, drain: Drain, context: Context) -> OsdId | None:
    """Return the OSD that is emptied now, in the order of the drain; None when all are empty."""
    ends_out = drain.plan is None or drain.plan.mechanic is not Mechanic.CRUSH_LADDER
    for id_ in drain.osds:
        osd = view.osds.get(id_)
        if osd is None:
            continue
        out = osd.reweight == 0.0 if ends_out else osd.crush_weight == 0.0 or osd.reweight == 0.0
        if not out or context.survey.of_osd(id_):
            return id_
    return None


def next_emptying_batch(
    view: ClusterView,
    drain: Drain,
    plan: Plan,
    osd: OsdId,
    now: Pace,
    flying: int,
    context: Context,
    allowance: Allowance,
) -> CommandBatch:
    """Return the next commands of the plan's mechanic. flying: PGs of the drain that are on their way."""
    starts = allowance.count_possible_starts(now.budget, flying)
    if plan.mechanic is Mechanic.CRUSH_LADDER:
        if view.osds[osd].crush_weight == 0.0:
            return CommandBatch(waits_for="the PGs that move must arrive first")
        affected = list_weight_affected_pgs(drain, context)
        unclean = context.survey.unclean
        return crush_weight_ladder.build_weight_step(
            view, osd, 0.0, allowance, starts, idle=not flying, affected=affected, unclean=unclean
        )
    if plan.mechanic is Mechanic.OVERRIDE_LADDER:
        if view.osds[osd].reweight == 0.0:
            return CommandBatch(waits_for="the PGs that move must arrive first")
        return override_reweight.build_override_step(view, osd, allowance, starts)
    if any(move.source == osd for move in list_remaining_moves(view, drain)):
        if starts < 1:
            one = f": one PG at a time, for {now.why_one}" if now.why_one else ""
            return CommandBatch(waits_for=f"{flying} on their way, budget {now.budget}{one}")
        return build_upmap_steps(view, drain, osd, context, allowance, starts)
    names_it = context.survey.of_osd(osd)
    if any(osd in pg.up for pg in names_it):
        return CommandBatch(outdated=True)
    if names_it or flying:
        return CommandBatch(waits_for="the last PGs must arrive")
    return override_reweight.finish_walk_override(view, osd, allowance)


def has_settings_to_give_back(
    view: ClusterView, drain: Drain, _policy: Policy, context: Context, allowance: Allowance
) -> bool:
    """Return whether an emptied disk has a CRUSH weight that no longer serves, or unwanted upmap items whose PGs
    fit elsewhere.
    """
    lowered = _find_lowered_weight(view, drain) is not None
    return lowered or bool(find_stray_upmaps(view, drain, context, allowance.room))


def give_back_settings(
    view: ClusterView, drain: Drain, now: Pace, flying: int, context: Context, allowance: Allowance
) -> CommandBatch:
    """Return the next step that gives back the CRUSH weight of an emptied disk, then its unwanted upmap items."""
    if now.is_on_hold:
        return CommandBatch(waits_for="clients wait longer than an hour before")
    starts = allowance.count_possible_starts(now.budget, flying)
    if (key := _find_lowered_weight(view, drain)) is not None:
        goal = float(drain.saved[key])
        batch = crush_weight_ladder.build_weight_step(view, key.osd, goal, allowance, starts, idle=not flying)
        there = f"the OSDs beside osd.{key.osd} have no room for what its CRUSH weight {goal:.4f} brings"
        return CommandBatch(full=there) if batch.outdated else batch
    strays = release_strays(view, drain, context, allowance, starts)
    return strays or CommandBatch(waits_for="the PGs that move must arrive first")


def _find_lowered_weight(view: ClusterView, drain: Drain) -> OsdCrushWeight | None:
    """Return the CRUSH weight that the drain lowered before it went on to empty the OSD by its override.

    A plan is made again when the map changes, and then may use the other mechanic.
    """
    for id_ in drain.osds:
        key, osd = OsdCrushWeight(id_), view.osds.get(id_)
        if osd is None or osd.reweight != 0.0 or osd.crush_weight == 0.0 or key not in drain.ours:
            continue
        now = read_setting_value(view, key)
        if not is_same_setting_value(key, now, drain.saved[key]) and is_explained_by_drain(drain, key, now):
            return key
    return None


def has_weight_or_upmaps_left(
    view: ClusterView, drain: Drain, policy: Policy, context: Context, allowance: Allowance
) -> bool:
    """Return whether a removed disk still has its CRUSH weight, or upmap items of other PGs that can go."""
    if crush_removal.to_retire(view, drain) is not None:
        return True
    return policy.remove_bystander_upmaps and crush_removal.has_returnable_upmaps(
        view, drain, context, allowance
    )


def take_weight_away(
    view: ClusterView, drain: Drain, now: Pace, flying: int, context: Context, allowance: Allowance
) -> CommandBatch:
    """Return the next step to CRUSH weight 0 without moving data, then the removal of other PGs' upmap items."""
    osd = crush_removal.to_retire(view, drain)
    if osd is not None:
        return crush_removal.build_removal_step(view, drain, osd, context, allowance)
    if now.is_on_hold:
        return CommandBatch(waits_for="clients wait longer than an hour before")
    return crush_removal.release_bystander_upmaps(
        view, drain, context.survey, allowance, allowance.count_possible_starts(now.budget, flying)
    )


def build_upmap_steps(
    view: ClusterView, drain: Drain, osd: OsdId, context: Context, allowance: Allowance, starts: int
) -> CommandBatch:
    """Return commands that map up to `starts` PGs of `osd` to their places, in the plan's order."""
    routes: dict[PgId, list[Move]] = {}
    mine = {move.pg for move in list_remaining_moves(view, drain) if move.source == osd}
    for move in list_remaining_moves(view, drain):
        if move.pg in mine:
            routes.setdefault(move.pg, []).append(move)
    chosen: dict[PgId, tuple[Move, ...]] = {}
    arriving: dict[OsdId, int] = {}
    for id_, moves in routes.items():
        if len(chosen) >= starts:
            break
        if id_ in context.survey.unclean or id_ in context.survey.broken or id_ in allowance.taken:
            continue  # it already moves or peers for any reason, or is not whole
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
    raw = compute_up_sets(view, (), chosen, with_upmaps=False)
    commands, pgs = [], []
    for id_, sent in chosen.items():
        pg = view.pgs[id_]
        want = _apply_moves_to_up(pg.up, sent)
        pool = view.pools[pg.pool]
        pairs = pairs_for(raw[id_], want, view.upmap_items.get(id_, ()), ordered=pool.erasure)
        region = find_failure_domains(view.crush, pool)
        if pairs is None or not region.is_legal(want):
            return CommandBatch(outdated=True)
        up = apply_upmap_pairs(raw[id_], pairs)
        if set(up) != set(want):
            return CommandBatch(outdated=True)
        if not all(allowance.room.fits(move.target, move.bytes) for move in sent):
            return CommandBatch(outdated=True)
        allowance.reserve_move(id_, ((move.target, move.bytes) for move in sent))
        commands.append(build_upmap_command(id_, pairs, choose_pg_temp_members(view, pg, up)))
        pgs.append(id_)
    went = ", ".join(f"{m.pg} osd.{m.source}>osd.{m.target}" for sent in chosen.values() for m in sent)
    return CommandBatch(tuple(commands), frozenset(pgs), f"upmap {went}")


def pull_back(view: ClusterView, drain: Drain, context: Context, allowance: Allowance) -> CommandBatch:
    """Map PGs that still wait in `backfill_wait` back to where their data is; nothing of them has moved yet."""
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
    raw = compute_up_sets(view, (), [pg.id for pg in waiting], with_upmaps=False)
    commands, pgs = [], []
    for pg in waiting:
        ordered = view.pools[pg.pool].erasure
        pairs = pairs_for(raw[pg.id], pg.acting, view.upmap_items.get(pg.id, ()), ordered=ordered)
        if pairs is not None:
            commands.append(build_upmap_command(pg.id, pairs))
            pgs.append(pg.id)
    allowance.reserve_peering(pgs)
    return CommandBatch(tuple(commands), frozenset(pgs), f"take back {', '.join(pgs)} from backfill_wait")


def _apply_moves_to_up(up: Sequence[int], moves: tuple[Move, ...]) -> tuple[int, ...]:
    by_source = {int(move.source): int(move.target) for move in moves}
    return tuple(by_source.get(osd, osd) for osd in up)


FULL = 1.0
"""The override at which an OSD has its whole share."""


def find_osd_to_fill(view: ClusterView, drain: Drain, context: Context) -> OsdId | None:
    """Return the OSD that is filled now, in the order of the drain; None when all have their share."""
    arriving = {move.target for move in list_remaining_moves(view, drain)} | {
        OsdId(osd) for pg in in_flight(drain, context) for osd in pg.up
    }
    return next(
        (
            id_
            for id_ in drain.osds
            if id_ in view.osds and (view.osds[id_].reweight < FULL or id_ in arriving)
        ),
        None,
    )


def next_filling_batch(
    view: ClusterView,
    drain: Drain,
    _plan: Plan,
    osd: OsdId,
    now: Pace,
    flying: int,
    _context: Context,
    allowance: Allowance,
) -> CommandBatch:
    """Return the next reweight step up. flying: PGs of the fill that are on their way."""
    if view.osds[osd].reweight == FULL:
        return CommandBatch(waits_for="the PGs that move must arrive first")
    starts = allowance.count_possible_starts(now.budget, flying)
    return override_reweight.give_back(view, drain, osd, FULL, allowance, starts, idle=not flying)
