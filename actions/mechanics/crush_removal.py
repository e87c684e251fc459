"""The end of a removed disk: its CRUSH weight goes to 0, and no data moves.

Setting a CRUSH weight to 0 moves about one OSD's worth of data for every bucket level above the OSD (ceph.md
1), although the OSD is empty, because the sums of host, rack and root change. The weight therefore goes down
in steps, each of which affects no more PGs than may peer. In the same step, under `norebalance` and
`nobackfill`, upmap items keep those PGs where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from predrain.actions.cluster.cluster_port import Command, CrushReweight, RemoveUpmap, SetFlag
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.claimed_settings import (
    Pairs,
    collect_upmap_items,
    command_for,
    is_same_setting_value,
    read_setting_value,
    write_pairs,
)
from predrain.actions.core.in_flight import Allowance, list_weight_affected_pgs
from predrain.actions.core.pg_survey import Survey, has_all_members
from predrain.actions.core.situation import Context
from predrain.actions.mechanics.crush_weight_ladder import GRAIN
from predrain.actions.mechanics.step_batch import Bound, CommandBatch, bound_for, build_upmap_command
from predrain.actions.placement.failure_domains import apply_upmap_pairs, find_failure_domains, pairs_for
from predrain.actions.placement.what_if import (
    Placement,
    apply_crush_weights,
    compute_present_up,
    compute_up_sets,
    find_weight_affected_pgs,
    has_weight_sets,
)
from predrain.data.drain import Drain, Mechanic
from predrain.data.ids import OsdId, PgId
from predrain.data.messages import WEIGHT_SETS, format_count
from predrain.data.setting import UpmapItem

FLAGS = ("norebalance", "nobackfill")


def to_retire(view: ClusterView, drain: Drain) -> OsdId | None:
    """Return the next OSD of an emptied drain whose CRUSH weight must still go to 0; None if there is none."""
    if not drain.intent.removes_osd or drain.plan is None:
        return None
    if drain.plan.mechanic is Mechanic.OVERRIDE_LADDER:
        return None
    return next((osd for osd in drain.osds if osd in view.osds and view.osds[osd].crush_weight > 0), None)


def build_removal_step(
    view: ClusterView, drain: Drain, osd: OsdId, context: Context, allowance: Allowance
) -> CommandBatch:
    """Return the next step towards CRUSH weight 0, with the upmap items that keep every PG where it is."""
    lost = [pg for pg in _list_lost_upmaps(view, drain, context) if pg not in allowance.taken]
    lost = lost[: max(0, allowance.peering)]
    if lost:
        allowance.reserve_peering(lost)
        again = (command_for(key, drain.ours[key]) for key in map(UpmapItem, lost))
        return CommandBatch(
            _wrap_in_flags(again),
            frozenset(lost),
            f"set the upmap items of {', '.join(lost)} again: the last ones do not stand",
        )
    if has_weight_sets(view):
        return CommandBatch(waits_for=f"{WEIGHT_SETS}; remove them, or change the weight by hand")
    if context.survey.unclean:
        return CommandBatch(waits_for="every PG must be at rest before the CRUSH weight changes")
    if allowance.peering < 1 or allowance.taken:
        return CommandBatch(waits_for="other drains' PGs peer")
    now = view.osds[osd].crush_weight
    planned = list_weight_affected_pgs(drain, context)
    candidates = [pg for pg in planned if pg in view.pgs] or sorted(
        find_weight_affected_pgs(view, drain.osds, {}, context.survey.unclean)
    )
    present = compute_present_up(view, candidates)
    weight, after = _find_reweight_step(view, osd, now, present, allowance.peering)
    upmaps, kept = _build_keeping_upmaps(
        view,
        after,
        present,
        compute_up_sets(view, (), after, with_upmaps=False, crush=apply_crush_weights(view, {osd: weight})),
    )
    for id_ in after.keys() - kept:
        pg = view.pgs[id_]
        want = after[id_]
        bound = bound_for(view, pg, want)
        if not has_all_members(want, view.pools[pg.pool].size):
            return CommandBatch(waits_for=f"at CRUSH weight {weight:.4f} PG {id_} would not be whole")
        if not all(allowance.room.fits(*to) for to in bound):
            return CommandBatch(waits_for=f"PG {id_} cannot be kept where it is, and its new place is full")
        allowance.reserve_move(id_, bound)
    allowance.reserve_peering(kept)
    commands: list[Command] = [CrushReweight(osd, weight), *upmaps]
    decided = (
        f"CRUSH weight of osd.{osd} {now:.5f} > {weight:.5f}: {format_count(len(kept), 'PG')} kept in "
        "place by upmap items"
    )
    if len(after) > len(kept):
        decided += f", {format_count(len(after) - len(kept), 'PG')} move as CRUSH wants"
    return CommandBatch(_wrap_in_flags(commands) if after else tuple(commands), frozenset(after), decided)


def has_returnable_upmaps(view: ClusterView, drain: Drain, context: Context, allowance: Allowance) -> bool:
    """Return whether an upmap item of another OSD's PG can go, or whether such a PG is on its way to CRUSH's
    place.

    An item can go if the PG fits where CRUSH wants it.
    """
    own = {pg for pg in context.survey.unclean if UpmapItem(pg) in drain.ours}
    return bool(own) or any(_list_releasable_upmaps(view, drain, allowance))


def release_bystander_upmaps(
    view: ClusterView, drain: Drain, survey: Survey, allowance: Allowance, starts: int
) -> CommandBatch:
    """Return a batch that removes up to `starts` upmap items of other OSDs' PGs that fit where CRUSH wants
    them.
    """
    if starts < 1:
        return CommandBatch(waits_for="the budget is in use")
    pgs: list[PgId] = []
    for id_, bound in _list_releasable_upmaps(view, drain, allowance):
        if id_ in survey.unclean or id_ in allowance.taken or len(pgs) >= starts:
            continue
        allowance.reserve_move(id_, bound)
        pgs.append(id_)
    if not pgs:
        return CommandBatch(waits_for="the PGs that move must arrive first")
    decided = f"remove the upmap items of {', '.join(pgs)}: the PGs go where CRUSH wants"
    return CommandBatch(tuple(RemoveUpmap(pg) for pg in pgs), frozenset(pgs), decided)


def _list_releasable_upmaps(
    view: ClusterView, drain: Drain, allowance: Allowance
) -> Iterator[tuple[PgId, Bound]]:
    """Yield PGs that the retirement maps by upmap items and that fit in CRUSH's place, with the data to
    receive there.
    """
    affected = drain.plan.affected_pgs if drain.plan else ()
    upmaps = [pg for pg in affected if view.upmap_items.get(pg) and drain.ours.get(UpmapItem(pg))]
    for id_, want in compute_up_sets(view, (), upmaps, with_upmaps=False).items():
        pg = view.pgs[id_]
        bound = bound_for(view, pg, want)
        if all(allowance.room.fits(*to) for to in bound):
            yield id_, bound


def _wrap_in_flags(commands: Iterable[Command]) -> tuple[Command, ...]:
    """Put the commands between setting the flags and clearing them, all in one step."""
    return (
        *(SetFlag(flag, on=True) for flag in FLAGS),
        *commands,
        *(SetFlag(flag, on=False) for flag in reversed(FLAGS)),
    )


def _list_lost_upmaps(view: ClusterView, drain: Drain, context: Context) -> list[PgId]:
    """Return PGs that an interrupted step left to move to CRUSH's place, although upmap items would keep
    them.

    PGs that another drain has moved on since are not among them.
    """
    survey = context.survey
    astray: dict[PgId, Pairs] = {}
    for id_, pairs in collect_upmap_items(drain.ours).items():
        key, pg = UpmapItem(id_), survey.unclean.get(id_)
        if not pairs or pg is None or pg.up == pg.acting or not survey.is_whole(pg):
            continue
        now = read_setting_value(view, key)
        stands = {
            drain.ours[key],
            *(other.ours[key] for other in context.list_other_drains(drain) if key in other.ours),
        }
        if not any(is_same_setting_value(key, now, value) for value in stands):
            astray[id_] = pairs
    raw = compute_up_sets(view, (), astray, with_upmaps=False)
    return [
        id_
        for id_, pairs in astray.items()
        if set(apply_upmap_pairs(raw[id_], pairs)) == set(survey.unclean[id_].acting)
    ]


def _find_reweight_step(
    view: ClusterView, osd: OsdId, now: float, present: Placement, allowed: int
) -> tuple[float, dict[PgId, tuple[int, ...]]]:
    """Return the lowest weight that changes at most `allowed` PGs of `present`, and these PGs' `up` at that
    weight.

    If even the smallest step changes more PGs, it is returned.
    """

    def changed(grains: int) -> dict[PgId, tuple[int, ...]]:
        tree = apply_crush_weights(view, {osd: grains * GRAIN})
        after = compute_up_sets(view, (), present.keys(), crush=tree)
        return {id_: up for id_, up in after.items() if up != present[id_]}

    top = round(now / GRAIN)
    best = changed(0)
    if len(best) <= allowed:
        return 0.0, best
    low, high = 0, top  # invariant: at `low` more than `allowed` PGs change, at `high` no more than that
    fitting: dict[PgId, tuple[int, ...]] = {}
    while high - low > 1:
        middle = (low + high) // 2
        tried = changed(middle)
        if len(tried) <= allowed:
            high, fitting = middle, tried
        else:
            low, best = middle, tried
    return (high * GRAIN, fitting) if high < top else (low * GRAIN, best)


def _build_keeping_upmaps(
    view: ClusterView, after: Placement, present: Placement, raw: Placement
) -> tuple[list[Command], set[PgId]]:
    """Return upmap items that keep each PG of `after` on its `present` members, and the PGs that they keep."""
    commands: list[Command] = []
    kept: set[PgId] = set()
    for id_ in sorted(after):
        pool = view.pools[view.pgs[id_].pool]
        standing = view.upmap_items.get(id_, ())
        pairs = pairs_for(raw[id_], present[id_], standing, ordered=pool.erasure)
        if pairs is None or not find_failure_domains(view.crush, pool).is_legal(present[id_]):
            continue
        kept.add(id_)
        if not is_same_setting_value(UpmapItem(id_), write_pairs(pairs), write_pairs(standing)):
            commands.append(build_upmap_command(id_, pairs))
    return commands, kept
