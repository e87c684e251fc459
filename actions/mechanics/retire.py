"""The end of a disk that goes for good: its CRUSH weight goes to 0 and no byte moves.

A CRUSH weight of 0 moves about one OSD's worth again for every bucket level above the OSD (ceph.md 1), although the
OSD is empty: the sums of host, rack and root change. So the weight goes down in rungs, each of which stirs no more
PGs than may peer; in the same step, under `norebalance` and `nobackfill`, those PGs are pinned where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from predrain.actions.cluster.port import Command, CrushReweight, RemoveUpmap, SetFlag
from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import Pairs, command_for, found, pinned, same, write_pairs
from predrain.actions.core.in_flight import Allowance, stirrable
from predrain.actions.core.pg_survey import Survey, whole
from predrain.actions.core.situation import Context
from predrain.actions.core.verdicts import count
from predrain.actions.mechanics.batch import Bound, CommandBatch, bound_for, pin
from predrain.actions.mechanics.weight import GRAIN
from predrain.actions.placement.failure_domains import applied, domains, pairs_for
from predrain.actions.placement.what_if import (
    Placement,
    compute_present_up,
    placed,
    stirred_by,
    weighed,
    why_no_crush_weight,
)
from predrain.data.drain import Drain, Mechanic
from predrain.data.ids import OsdId, PgId
from predrain.data.setting import UpmapItem

FLAGS = ("norebalance", "nobackfill")


def to_retire(view: ClusterView, drain: Drain) -> OsdId | None:
    """The next OSD of an emptied drain whose CRUSH weight must still go to 0; None when there is none."""
    if not drain.intent.removes_osd or drain.plan is None:
        return None
    if drain.plan.mechanic is Mechanic.OVERRIDE_LADDER:
        return None
    return next((osd for osd in drain.osds if osd in view.osds and view.osds[osd].crush_weight > 0), None)


def next_rung(
    view: ClusterView, drain: Drain, osd: OsdId, context: Context, allowance: Allowance
) -> CommandBatch:
    """The next rung towards CRUSH weight 0, with the pins that keep every PG where it is."""
    lost = [pg for pg in _lost_pins(view, drain, context) if pg not in allowance.taken]
    lost = lost[: max(0, allowance.peering)]
    if lost:
        allowance.stir(lost)
        again = (command_for(key, drain.ours[key]) for key in map(UpmapItem, lost))
        return CommandBatch(
            _flagged(again), frozenset(lost), f"pin {', '.join(lost)} again: the last pin does not stand"
        )
    if why := why_no_crush_weight(view):
        return CommandBatch(waits_for=f"{why}; remove them, or change the weight by hand")
    if context.survey.restless:
        return CommandBatch(waits_for="every PG must be at rest before the CRUSH weight changes")
    if allowance.peering < 1 or allowance.taken:
        return CommandBatch(waits_for="other drains' PGs peer")
    now = view.osds[osd].crush_weight
    planned = stirrable(drain, context)
    candidates = [pg for pg in planned if pg in view.pgs] or sorted(
        stirred_by(view, drain.osds, {}, context.survey.restless)
    )
    present = compute_present_up(view, candidates)
    weight, after = _rung(view, osd, now, present, allowance.peering)
    pins, kept = _pins(
        view, after, present, placed(view, (), after, pinned=False, crush=weighed(view, {osd: weight}))
    )
    for id_ in after.keys() - kept:
        pg = view.pgs[id_]
        want = after[id_]
        bound = bound_for(view, pg, want)
        if not whole(want, view.pools[pg.pool].size):
            return CommandBatch(waits_for=f"at CRUSH weight {weight:.4f} PG {id_} would not be whole")
        if not all(allowance.room.fits(*to) for to in bound):
            return CommandBatch(waits_for=f"PG {id_} cannot be kept where it is, and its new place is full")
        allowance.send(id_, bound)
    allowance.stir(kept)
    commands: list[Command] = [CrushReweight(osd, weight), *pins]
    decided = f"CRUSH weight of osd.{osd} {now:.5f} > {weight:.5f}: {count(len(kept), 'PG')} kept by a pin"
    if len(after) > len(kept):
        decided += f", {count(len(after) - len(kept), 'PG')} move as CRUSH wants"
    return CommandBatch(_flagged(commands) if after else tuple(commands), frozenset(after), decided)


def returnable(view: ClusterView, drain: Drain, context: Context, allowance: Allowance) -> bool:
    """Whether a pin of a bystander stands whose PG has room where CRUSH wants it, or is on its way there."""
    own = {pg for pg in context.survey.restless if UpmapItem(pg) in drain.ours}
    return bool(own) or any(_free(view, drain, allowance))


def release(
    view: ClusterView, drain: Drain, survey: Survey, allowance: Allowance, starts: int
) -> CommandBatch:
    """Up to `starts` pins of bystanders given back, where their PGs have room."""
    if starts < 1:
        return CommandBatch(waits_for="the budget is in use")
    pgs: list[PgId] = []
    for id_, bound in _free(view, drain, allowance):
        if id_ in survey.restless or id_ in allowance.taken or len(pgs) >= starts:
            continue
        allowance.send(id_, bound)
        pgs.append(id_)
    if not pgs:
        return CommandBatch(waits_for="what is on its way must arrive")
    decided = f"give back the pins of {', '.join(pgs)}: they go where CRUSH wants"
    return CommandBatch(tuple(RemoveUpmap(pg) for pg in pgs), frozenset(pgs), decided)


def _free(view: ClusterView, drain: Drain, allowance: Allowance) -> Iterator[tuple[PgId, Bound]]:
    """PGs pinned by the retirement, with what CRUSH's own place would take in, where that fits."""
    stirred = drain.plan.stirred if drain.plan else ()
    pins = [pg for pg in stirred if view.upmap_items.get(pg) and drain.ours.get(UpmapItem(pg))]
    for id_, want in placed(view, (), pins, pinned=False).items():
        pg = view.pgs[id_]
        bound = bound_for(view, pg, want)
        if all(allowance.room.fits(*to) for to in bound):
            yield id_, bound


def _flagged(commands: Iterable[Command]) -> tuple[Command, ...]:
    """The commands between setting the flags and clearing them, all in one step."""
    return (
        *(SetFlag(flag, on=True) for flag in FLAGS),
        *commands,
        *(SetFlag(flag, on=False) for flag in reversed(FLAGS)),
    )


def _lost_pins(view: ClusterView, drain: Drain, context: Context) -> list[PgId]:
    """PGs that a step cut short left to go where CRUSH wants, although its pins would keep them where they are. What
    another drain has sent on since is its own.
    """
    survey = context.survey
    astray: dict[PgId, Pairs] = {}
    for id_, pairs in pinned(drain.ours).items():
        key, pg = UpmapItem(id_), survey.restless.get(id_)
        if not pairs or pg is None or pg.up == pg.acting or not survey.is_whole(pg):
            continue
        now = found(view, key)
        stands = {drain.ours[key], *(other.ours[key] for other in context.others(drain) if key in other.ours)}
        if not any(same(key, now, value) for value in stands):
            astray[id_] = pairs
    raw = placed(view, (), astray, pinned=False)
    return [
        id_
        for id_, pairs in astray.items()
        if set(applied(raw[id_], pairs)) == set(survey.restless[id_].acting)
    ]


def _rung(
    view: ClusterView, osd: OsdId, now: float, present: Placement, allowed: int
) -> tuple[float, dict[PgId, tuple[int, ...]]]:
    """The lowest weight that changes at most `allowed` PGs of `present` (or the smallest step there is), and their
    `up` at that weight.
    """

    def changed(grains: int) -> dict[PgId, tuple[int, ...]]:
        tree = weighed(view, {osd: grains * GRAIN})
        after = placed(view, (), present.keys(), crush=tree)
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


def _pins(
    view: ClusterView, after: Placement, present: Placement, raw: Placement
) -> tuple[list[Command], set[PgId]]:
    """Pins that keep each PG of `after` on its `present` members, and the PGs that they keep."""
    commands: list[Command] = []
    kept: set[PgId] = set()
    for id_ in sorted(after):
        pool = view.pools[view.pgs[id_].pool]
        standing = view.upmap_items.get(id_, ())
        pairs = pairs_for(raw[id_], present[id_], standing, ordered=pool.erasure)
        if pairs is None or not domains(view.crush, pool).legal(present[id_]):
            continue
        kept.add(id_)
        if not same(UpmapItem(id_), write_pairs(pairs), write_pairs(standing)):
            commands.append(pin(id_, pairs))
    return commands, kept
