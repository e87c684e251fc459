"""The way back: everything that a drain set becomes what it found, in the order weights, upmaps,
affinity, settings.

What somebody else changed meanwhile is theirs and stays, and what is of an OSD or PG that is in the map no more is
left out; the journal says so. Data flows back under the same budgets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from predrain.actions.cluster.port import Command
from predrain.actions.cluster.view import ClusterView, Pg
from predrain.actions.core.claimed_settings import (
    Pairs,
    found,
    is_in_map,
    is_ours,
    pinned,
    read_pairs,
    same,
    write_pairs,
)
from predrain.actions.core.in_flight import Allowance, in_flight
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.throttles import foreign, shared, to_give_back
from predrain.actions.mechanics import affinity
from predrain.actions.mechanics.batch import CommandBatch, back, bound_for, pin, serving
from predrain.actions.mechanics.desired_upmaps import find_desired_upmaps, find_stray_upmaps
from predrain.actions.mechanics.override import give_back
from predrain.actions.mechanics.override import next_rung as override_down
from predrain.actions.mechanics.void import find_kept_pairs
from predrain.actions.mechanics.weight import next_rung
from predrain.actions.placement.failure_domains import applied, has_both_osds
from predrain.data.drain import Drain
from predrain.data.ids import OsdId, PgId
from predrain.data.setting import Before, OsdAffinity, OsdCrushWeight, OsdOverride, Setting, UpmapItem

_OTHERS = "left as found by others"
_GONE = "left out, not in the map any more"
_REFUSED = "left out, the mon does not take it"


@dataclass(frozen=True, slots=True)
class Return:
    """The drain with what it gives up claim to, the next batch, and whether everything is back."""

    drain: Drain
    batch: CommandBatch
    done: bool = False


def next_return(
    view: ClusterView, drain: Drain, policy: Policy, context: Context, allowance: Allowance, starts: int
) -> Return:
    """One batch of the way back. A claim is given up only where it is also said: with commands, or at the end."""
    way = _next_return(view, drain, policy, context, allowance, starts)
    return way if way.done or way.batch.commands else replace(way, drain=drain)


def _next_return(
    view: ClusterView, drain: Drain, policy: Policy, context: Context, allowance: Allowance, starts: int
) -> Return:
    open_keys = [key for key in drain.ours if not isinstance(key, Before) and not shared(key)]
    drain, open_keys, given_up = _abandoned(view, drain, context, policy, open_keys)
    given_up[_OTHERS] += [key for key in drain.ours if foreign(view, drain, key, context)]
    note = "".join(f"; {why}: {', '.join(map(str, keys))}" for why, keys in given_up.items() if keys)
    idle = not in_flight(drain, context)
    pins = {key.pg for key in open_keys if isinstance(key, UpmapItem)}
    absent = [key for key in open_keys if isinstance(key, OsdOverride) and view.osds[key.osd].is_down_and_out]
    open_keys = [key for key in open_keys if key not in absent]
    for key in (k for k in open_keys if isinstance(k, OsdOverride | OsdCrushWeight)):
        osd, goal = key.osd, float(drain.saved[key])
        if isinstance(key, OsdOverride):
            if goal < view.osds[osd].reweight:
                batch = override_down(view, osd, allowance, starts, goal)
            else:
                batch = give_back(view, drain, osd, goal, allowance, starts, idle=idle, pins=pins)
        else:
            batch = next_rung(view, osd, goal, allowance, starts, idle=idle, pins=pins)
        if batch.outdated:
            batch = CommandBatch(full=f"where CRUSH would take PGs of osd.{osd} is too full by now")
        if batch.unpin & allowance.taken:
            batch = CommandBatch(waits_for="another drain's step on the same PGs")
        elif batch.unpin:
            keys = [UpmapItem(pg) for pg in sorted(batch.unpin)]
            batch = _unpin(view, drain, context, allowance, keys, starts, "")
        return Return(drain, replace(batch, decided=batch.decided + note))
    upmaps = [key for key in open_keys if isinstance(key, UpmapItem)]
    keys = [key for key in upmaps if key.pg not in allowance.taken]
    if keys:
        return Return(drain, _unpin(view, drain, context, allowance, keys, starts, note))
    rest = [key for key in open_keys if not isinstance(key, UpmapItem)]
    rest += to_give_back(view, drain, context)
    if upmaps:
        return Return(drain, CommandBatch(waits_for="another drain's step on the same PGs"))
    if not idle:
        return Return(drain, CommandBatch(waits_for="data still flows back"))
    if strays := release_strays(view, drain, context, allowance, starts, note):
        return Return(drain, strays)
    for lowered in (key for key in rest if isinstance(key, OsdAffinity)):
        batch = affinity.next_rung(view, lowered.osd, float(drain.saved[lowered]), allowance)
        return Return(drain, replace(batch, decided=batch.decided + note))
    if rest:
        return Return(drain, back({key: drain.saved[key] for key in rest}, note))
    if absent:  # a weight now would place PGs on an OSD that is down, until the mon marks it out again
        return Return(drain, CommandBatch(absent=_describe_absence(view, drain, absent)))
    without = _without(view, drain, pinned(drain.ours))
    return Return(drain, CommandBatch(decided=f"everything is as it was found{without}{note}"), done=True)


def release_strays(
    view: ClusterView, drain: Drain, context: Context, allowance: Allowance, starts: int, note: str = ""
) -> CommandBatch | None:
    """Pins that an emptied drain left and that are not wanted any more go, as far as there is room; None: there are
    none.
    """
    if not drain.intent.moves_data:
        return None
    strays = find_stray_upmaps(view, drain, context, allowance.room)
    keys = [UpmapItem(pg) for pg in strays if pg not in allowance.taken]
    return _unpin(view, drain, context, allowance, keys, starts, note) if strays else None


def _unpin(
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
        if len(pgs) == starts or (pg.id in context.survey.restless and not _waits(pg)):
            continue
        goal = goals[key.pg]
        was = {new: old for old, new in read_pairs(found(view, key)) if (old, new) not in goal}
        # Even where CRUSH's choice cannot be computed.
        up = applied(tuple(was.get(osd, osd) for osd in pg.up), goal)
        bound = bound_for(view, pg, up)
        if silent := [osd for osd, _ in bound if allowance.room.fullness(osd) is None]:
            unknown = f"{_names(silent)} tells no sizes yet"
            continue
        if not all(allowance.room.fits(osd, size) for osd, size in bound):
            full = (
                f"PG {pg.id} stays where it is: {_names(osd for osd, _ in bound)} has no room for it any more"
            )
            continue
        allowance.send(pg.id, bound)
        commands.append(pin(pg.id, goal, serving(view, pg, up)))
        pgs.append(pg.id)
    if not pgs:
        if full and not unknown and not context.survey.restless:
            return CommandBatch(full=full)
        return CommandBatch(waits_for=unknown or "PGs are busy")
    decided = f"upmaps of {', '.join(pgs)} as they were{_without(view, drain, pgs)}{note}"
    return CommandBatch(tuple(commands), frozenset(pgs), decided)


def _describe_absence(view: ClusterView, drain: Drain, keys: Iterable[OsdOverride]) -> str:
    """Why the overrides of `keys` cannot be given back now, and what ends that."""
    values = ", ".join(
        f"override {float(found(view, key)):.4f} of osd.{key.osd} to {float(drain.saved[key]):.4f}"
        for key in keys
    )
    return (
        f"All else is as it was found. {values}: not while it is down and out, since PGs would be placed on it; "
        "start it, or remove it from the map (ceph osd purge)"
    )


def _waits(pg: Pg) -> bool:
    """A PG that still waits for backfill loses nothing by being sent back."""
    return bool(pg.states & {"backfill_wait", "backfilling", "backfill_toofull"})


def _names(osds: Iterable[OsdId]) -> str:
    return ", ".join(f"osd.{osd}" for osd in osds)


def _find_upmap_goals(
    view: ClusterView, drain: Drain, context: Context, keys: Iterable[Setting]
) -> dict[PgId, Pairs]:
    """The pairs that each PG among `keys` gets: as found, but for what other drains want of it, and for what the mon
    would refuse for ever or drop: pairs of OSDs that are gone, and pairs that are void as the map is now.
    """
    pgs = [key.pg for key in keys if isinstance(key, UpmapItem)]
    return find_kept_pairs(view, find_desired_upmaps(view, drain, context, pgs))


def _without(view: ClusterView, drain: Drain, pgs: Iterable[PgId]) -> str:
    """The pairs of these PGs that are not set again, as the end of a sentence."""
    gone = [
        f"{write_pairs((pair,))} of PG {pg}"
        for pg in pgs
        for pair in read_pairs(drain.saved.get(UpmapItem(pg), ""))
        if not has_both_osds(view, pair)
    ]
    return f", without {', '.join(gone)}, for such an OSD is not in the map any more" if gone else ""


def _abandoned(
    view: ClusterView, drain: Drain, context: Context, policy: Policy, keys: Collection[Setting]
) -> tuple[Drain, list[Setting], dict[str, list[Setting]]]:
    """Split the keys into those still to restore and, by why, those that others changed, the map lost, or the mon will
    not take.
    """
    ours = dict(drain.ours)
    todo: list[Setting] = []
    given_up: dict[str, list[Setting]] = {_OTHERS: [], _GONE: [], _REFUSED: []}
    goals = _find_upmap_goals(view, drain, context, keys)
    for key in keys:
        now = found(view, key)
        if not is_in_map(view, key):
            why = _GONE
        elif same(key, now, write_pairs(goals[key.pg]) if isinstance(key, UpmapItem) else drain.saved[key]):
            continue
        elif not _is_ours(drain, context, key, now):
            why = _OTHERS
        elif isinstance(key, UpmapItem) and context.memory.attempts.get(key, 0) >= 2 * policy.pin_attempts:
            why = _REFUSED
        else:
            todo.append(key)
            continue
        given_up[why].append(key)
        del ours[key]
        ours.pop(Before(key), None)
    return (replace(drain, ours=ours) if ours != drain.ours else drain), todo, given_up


def _is_ours(drain: Drain, context: Context, key: Setting, now: str) -> bool:
    """Whether a drain of ours set what stands: this one, or for a PG others, too, which may have sent it on."""
    others = (other for other in context.drains if other.id != drain.id) if isinstance(key, UpmapItem) else ()
    return is_ours((drain, *others), key, now)
