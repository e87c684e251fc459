"""The way back: each setting of a drain gets its found value, in the order weights, upmap items, affinity,
options.

A setting that another party changed meanwhile stays as it is. Settings of an OSD or PG that is no longer in
the map are left out. The journal reports both. Data flows back under the same budgets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from predrain.actions.cluster.cluster_port import Command
from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.core.claimed_settings import (
    Pairs,
    collect_upmap_items,
    is_in_map,
    is_ours,
    is_same_setting_value,
    read_pairs,
    read_setting_value,
    write_pairs,
)
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.held_throttles import is_cluster_setting, is_set_by_others, to_give_back
from predrain.actions.core.in_flight import Allowance, in_flight
from predrain.actions.core.situation import Context
from predrain.actions.mechanics import primary_affinity
from predrain.actions.mechanics.crush_weight_ladder import build_weight_step
from predrain.actions.mechanics.desired_upmaps import find_desired_upmaps, find_stray_upmaps
from predrain.actions.mechanics.override_reweight import build_override_step as override_down
from predrain.actions.mechanics.override_reweight import give_back
from predrain.actions.mechanics.step_batch import (
    CommandBatch,
    bound_for,
    build_restore_batch,
    build_upmap_command,
    choose_pg_temp_members,
)
from predrain.actions.placement.failure_domains import apply_upmap_pairs, has_both_osds
from predrain.actions.placement.what_if import find_kept_pairs
from predrain.data.drain import Drain
from predrain.data.ids import OsdId, PgId
from predrain.data.setting import OsdAffinity, OsdCrushWeight, OsdOverride, Setting, UpmapItem, ValueBefore


class LeftCause(Enum):
    """The causes for which a setting is not restored."""

    OTHERS = "others"
    GONE = "gone"
    REFUSED = "refused"


LEFT_TEXTS: Mapping[LeftCause, str] = {
    LeftCause.OTHERS: "left as found by others",
    LeftCause.GONE: "left out, not in the map any more",
    LeftCause.REFUSED: "left out, the mon does not take it",
}


@dataclass(frozen=True, slots=True)
class RestoreProgress:
    """The drain without the claims that it gives up, the next batch, and whether everything is back."""

    drain: Drain
    batch: CommandBatch
    done: bool = False


def next_return(
    view: ClusterView, drain: Drain, policy: Policy, context: Context, allowance: Allowance, starts: int
) -> RestoreProgress:
    """Return one batch of the way back.

    A claim is given up only with commands or at the end, because only then the journal reports it.
    """
    way = _next_return(view, drain, policy, context, allowance, starts)
    return way if way.done or way.batch.commands else replace(way, drain=drain)


def _next_return(
    view: ClusterView, drain: Drain, policy: Policy, context: Context, allowance: Allowance, starts: int
) -> RestoreProgress:
    open_keys = [
        key for key in drain.ours if not isinstance(key, ValueBefore) and not is_cluster_setting(key)
    ]
    drain, open_keys, given_up = _split_restorable_keys(view, drain, context, policy, open_keys)
    given_up[LeftCause.OTHERS] += [key for key in drain.ours if is_set_by_others(view, drain, key, context)]
    note = "".join(
        f"; {LEFT_TEXTS[why]}: {', '.join(map(str, keys))}" for why, keys in given_up.items() if keys
    )
    idle = not in_flight(drain, context)
    mapped_pgs = {key.pg for key in open_keys if isinstance(key, UpmapItem)}
    absent = [key for key in open_keys if isinstance(key, OsdOverride) and view.osds[key.osd].is_down_and_out]
    open_keys = [key for key in open_keys if key not in absent]
    for key in (k for k in open_keys if isinstance(k, OsdOverride | OsdCrushWeight)):
        osd, goal = key.osd, float(drain.saved[key])
        if isinstance(key, OsdOverride):
            if goal < view.osds[osd].reweight:
                batch = override_down(view, osd, allowance, starts, goal)
            else:
                batch = give_back(view, drain, osd, goal, allowance, starts, idle=idle, mapped_pgs=mapped_pgs)
        else:
            batch = build_weight_step(view, osd, goal, allowance, starts, idle=idle, mapped_pgs=mapped_pgs)
        if batch.outdated:
            batch = CommandBatch(full=f"where CRUSH would take PGs of osd.{osd} is too full by now")
        if batch.restore_first & allowance.taken:
            batch = CommandBatch(waits_for="another drain's step on the same PGs")
        elif batch.restore_first:
            keys = [UpmapItem(pg) for pg in sorted(batch.restore_first)]
            batch = _restore_upmaps(view, drain, context, allowance, keys, starts, "")
        return RestoreProgress(drain, replace(batch, decided=batch.decided + note))
    upmaps = [key for key in open_keys if isinstance(key, UpmapItem)]
    keys = [key for key in upmaps if key.pg not in allowance.taken]
    if keys:
        return RestoreProgress(drain, _restore_upmaps(view, drain, context, allowance, keys, starts, note))
    rest = [key for key in open_keys if not isinstance(key, UpmapItem)]
    rest += to_give_back(view, drain, context)
    if upmaps:
        return RestoreProgress(drain, CommandBatch(waits_for="another drain's step on the same PGs"))
    if not idle:
        return RestoreProgress(drain, CommandBatch(waits_for="data still flows back"))
    if strays := release_strays(view, drain, context, allowance, starts, note):
        return RestoreProgress(drain, strays)
    for lowered in (key for key in rest if isinstance(key, OsdAffinity)):
        batch = primary_affinity.build_affinity_step(
            view, lowered.osd, float(drain.saved[lowered]), allowance
        )
        return RestoreProgress(drain, replace(batch, decided=batch.decided + note))
    if rest:
        return RestoreProgress(drain, build_restore_batch({key: drain.saved[key] for key in rest}, note))
    if absent:  # a weight now would place PGs on an OSD that is down, until the mon marks it out again
        return RestoreProgress(drain, CommandBatch(absent=_describe_absence(view, drain, absent)))
    without = _describe_missing_pairs(view, drain, collect_upmap_items(drain.ours))
    return RestoreProgress(
        drain, CommandBatch(decided=f"everything is as it was found{without}{note}"), done=True
    )


def release_strays(
    view: ClusterView, drain: Drain, context: Context, allowance: Allowance, starts: int, note: str = ""
) -> CommandBatch | None:
    """Return a batch that removes unwanted upmap items of an emptied drain, as far as capacity allows.

    Return None if there are none.
    """
    if not drain.intent.moves_data:
        return None
    strays = find_stray_upmaps(view, drain, context, allowance.room)
    keys = [UpmapItem(pg) for pg in strays if pg not in allowance.taken]
    return _restore_upmaps(view, drain, context, allowance, keys, starts, note) if strays else None


def _restore_upmaps(
    view: ClusterView,
    drain: Drain,
    context: Context,
    allowance: Allowance,
    keys: Collection[UpmapItem],
    starts: int,
    note: str,
) -> CommandBatch:
    if starts < 1:
        return CommandBatch(waits_for="the budget is in use")
    commands: list[Command] = []
    pgs: list[PgId] = []
    full = unknown = ""
    goals = _find_upmap_goals(view, drain, context, keys)
    for key in keys:
        pg = view.pgs[key.pg]
        if len(pgs) == starts or (pg.id in context.survey.unclean and not _is_awaiting_backfill(pg)):
            continue
        goal = goals[key.pg]
        was = {new: old for old, new in read_pairs(read_setting_value(view, key)) if (old, new) not in goal}
        # This works even where CRUSH's choice cannot be computed.
        up = apply_upmap_pairs(tuple(was.get(osd, osd) for osd in pg.up), goal)
        bound = bound_for(view, pg, up)
        if silent := [osd for osd, _ in bound if allowance.room.fullness(osd) is None]:
            unknown = f"{_format_osd_names(silent)} tells no sizes yet"
            continue
        if not all(allowance.room.fits(osd, size) for osd, size in bound):
            there = _format_osd_names(osd for osd, _ in bound)
            full = f"PG {pg.id} stays where it is: {there} has no room for it any more"
            continue
        allowance.reserve_move(pg.id, bound)
        commands.append(build_upmap_command(pg.id, goal, choose_pg_temp_members(view, pg, up)))
        pgs.append(pg.id)
    if not pgs:
        if full and not unknown and not context.survey.unclean:
            return CommandBatch(full=full)
        return CommandBatch(waits_for=unknown or "PGs are busy")
    decided = f"upmaps of {', '.join(pgs)} as they were{_describe_missing_pairs(view, drain, pgs)}{note}"
    return CommandBatch(tuple(commands), frozenset(pgs), decided)


def _describe_absence(view: ClusterView, drain: Drain, keys: Iterable[OsdOverride]) -> str:
    """Explain why the overrides of `keys` cannot be given back now, and what ends that."""
    values = ", ".join(
        f"override {float(read_setting_value(view, key)):.4f} of osd.{key.osd} to {float(drain.saved[key]):.4f}"
        for key in keys
    )
    return (
        f"All else is as it was found. {values}: not while it is down and out, since PGs would be placed on it; "
        "start it, or remove it from the map (ceph osd purge)"
    )


def _is_awaiting_backfill(pg: Pg) -> bool:
    """Return whether the PG still waits for backfill, so that sending it back loses nothing."""
    return bool(pg.states & {"backfill_wait", "backfilling", "backfill_toofull"})


def _format_osd_names(osds: Iterable[OsdId]) -> str:
    return ", ".join(f"osd.{osd}" for osd in osds)


def _find_upmap_goals(
    view: ClusterView, drain: Drain, context: Context, keys: Iterable[Setting]
) -> dict[PgId, Pairs]:
    """Return the pairs that each PG among `keys` gets: the pairs as found, changed by what other drains want
    of the PG.

    Pairs that the mon would refuse for ever or drop are left out: pairs of OSDs that are gone, and pairs that
    are void on the present map.
    """
    pgs = [key.pg for key in keys if isinstance(key, UpmapItem)]
    return find_kept_pairs(view, find_desired_upmaps(view, drain, context, pgs))


def _describe_missing_pairs(view: ClusterView, drain: Drain, pgs: Iterable[PgId]) -> str:
    """Describe the pairs of these PGs that are not set again, as the end of a sentence."""
    gone = [
        f"{write_pairs((pair,))} of PG {pg}"
        for pg in pgs
        for pair in read_pairs(drain.saved.get(UpmapItem(pg), ""))
        if not has_both_osds(view, pair)
    ]
    return f", without {', '.join(gone)}, for such an OSD is not in the map any more" if gone else ""


def _split_restorable_keys(
    view: ClusterView, drain: Drain, context: Context, policy: Policy, keys: Collection[Setting]
) -> tuple[Drain, list[Setting], dict[LeftCause, list[Setting]]]:
    """Split the keys into those still to restore and, by reason, those given up.

    A key is given up if another party changed it, the map lost it, or the mon refuses it.
    """
    ours = dict(drain.ours)
    todo: list[Setting] = []
    given_up: dict[LeftCause, list[Setting]] = {cause: [] for cause in LeftCause}
    goals = _find_upmap_goals(view, drain, context, keys)
    for key in keys:
        now = read_setting_value(view, key)
        if not is_in_map(view, key):
            why = LeftCause.GONE
        elif is_same_setting_value(
            key, now, write_pairs(goals[key.pg]) if isinstance(key, UpmapItem) else drain.saved[key]
        ):
            continue
        elif not _is_ours(drain, context, key, now):
            why = LeftCause.OTHERS
        elif isinstance(key, UpmapItem) and context.memory.attempts.get(key, 0) >= 2 * policy.upmap_attempts:
            why = LeftCause.REFUSED
        else:
            todo.append(key)
            continue
        given_up[why].append(key)
        del ours[key]
        ours.pop(ValueBefore(key), None)
    return (replace(drain, ours=ours) if ours != drain.ours else drain), todo, given_up


def _is_ours(drain: Drain, context: Context, key: Setting, now: str) -> bool:
    """Return whether our drains set the present value: this drain, or for a PG others too, which may have
    moved it on.
    """
    others = (other for other in context.drains if other.id != drain.id) if isinstance(key, UpmapItem) else ()
    return is_ours((drain, *others), key, now)
