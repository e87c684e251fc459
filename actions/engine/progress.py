"""A drain under way: how far it is, which OSD is next, how fast, and what its mechanic sends now."""

from __future__ import annotations

from dataclasses import replace

from predrain.actions.cluster.view import ClusterView, Pg
from predrain.actions.core.capacity import find_lost_pgs
from predrain.actions.core.in_flight import WALKING, Allowance, at_work, in_flight
from predrain.actions.core.pacing import Pace, Tempo, pace, signal
from predrain.actions.core.policy import Policy
from predrain.actions.core.priority import urgent
from predrain.actions.core.situation import Context
from predrain.actions.core.throttles import unheld
from predrain.actions.engine.strategies import STRATEGIES
from predrain.actions.mechanics import affinity, walk
from predrain.actions.mechanics.batch import CommandBatch
from predrain.data.drain import Drain, DrainState, Mechanic
from predrain.data.ids import OsdId


def progressed(view: ClusterView, drain: Drain, context: Context) -> Drain:
    """The drain with what has arrived counted: a PG has moved once its source is in neither `up` nor `acting`, and
    is lost when its source went without anybody in its place.
    """
    if not drain.intent.moves_data:
        return affinity.count_progress(view, drain)
    if drain.plan is None or not view.statistics_known or drain.state is DrainState.CANCELLING:
        return drain
    on_way = {
        move.pg
        for move in drain.plan.moves
        if (pg := view.pgs.get(move.pg)) is not None and (move.source in pg.up or move.source in pg.acting)
    }
    lost = find_lost_pgs(view, drain)
    moved_bytes = sum(move.bytes for move in drain.plan.moves if move.pg not in on_way | lost)
    planned = len({move.pg for move in drain.plan.moves})
    progress = replace(
        drain.progress,
        planned_pgs=planned,
        planned_bytes=drain.plan.bytes,
        moved_pgs=planned - len(on_way | lost),
        lost_pgs=len(lost),
        moved_bytes=moved_bytes,
        in_flight=sum(pg.id not in lost for pg in in_flight(drain, context)),
    )
    return drain if progress == drain.progress else replace(drain, progress=progress)


def find_current_osd(view: ClusterView, drain: Drain, context: Context) -> OsdId | None:
    """The OSD of the device that is emptied (or filled) now: one by one, in order; None when all are done."""
    movement = STRATEGIES[drain.intent].movement
    return movement.find_current_osd(view, drain, context) if movement is not None else None


def paced(
    view: ClusterView, drain: Drain, policy: Policy, context: Context
) -> tuple[Drain, Pace, tuple[Pg, ...]]:
    """The drain with its new budget, the pace, and its PGs on their way. The signal is the worst among the sources
    and targets of its plan.
    """
    flying = in_flight(drain, context)
    busy = set(drain.osds) | {OsdId(osd) for pg in flying for osd in (*pg.up, *pg.acting)}
    working = at_work(drain)
    now = pace(
        drain.progress.budget,
        len(flying),
        signal(view, working | busy, busy),
        policy,
        urgent=urgent(drain, context.outlooks, policy),
        before=drain.progress.asked,
        started=drain.progress.started,
        why_one=unheld(view, working) or "",
        due=context.memory.is_pace_due(drain.id, context.now, policy),
    )
    sent = len({pg.id for pg in flying} - find_lost_pgs(view, drain))  # Ceph rebuilds what is lost
    progress = replace(drain.progress, budget=now.budget, in_flight=sent, asked=now.asked.value)
    return (drain if progress == drain.progress else replace(drain, progress=progress)), now, flying


def next_batch(
    view: ClusterView,
    drain: Drain,
    osd: OsdId,
    now: Pace,
    flying: int,
    context: Context,
    allowance: Allowance,
) -> CommandBatch:
    """What the drain's mechanic sends next, within the pace and the allowance."""
    plan, movement = drain.plan, STRATEGIES[drain.intent].movement
    if plan is None or movement is None:
        return CommandBatch(outdated=True)
    if plan.mechanic is Mechanic.REBUILD and view.osds[osd].primary_affinity > 0:
        return affinity.next_rung(
            view, osd, 0.0, allowance
        )  # whatever clients feel: this is what spares them
    ratio = "no signal" if now.ratio is None else f"{now.ratio:.2f}x"
    if now.tempo is Tempo.PULL_BACK and plan.mechanic in WALKING and flying:
        return walk.pull_back(view, drain, context, allowance)
    if now.holds:
        return CommandBatch(waits_for=f"clients wait {ratio} as long as an hour before: {now.tempo.value}")
    return movement.next_batch(view, drain, plan, osd, now, flying, context, allowance)
