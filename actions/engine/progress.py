"""The progress of a drain: its PG counts, the current OSD, the pace, and the next commands of its mechanic."""

from __future__ import annotations

from dataclasses import replace

from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.core.capacity import find_lost_pgs
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.held_throttles import explain_unreliable_throttle
from predrain.actions.core.in_flight import WALKING, Allowance, at_work, in_flight
from predrain.actions.core.pacing import Pace, Tempo, compute_latency_signal, compute_pace
from predrain.actions.core.priority import is_drain_urgent
from predrain.actions.core.situation import Context
from predrain.actions.engine.strategies import STRATEGIES
from predrain.actions.mechanics import primary_affinity
from predrain.actions.mechanics.drain_steps import pull_back
from predrain.actions.mechanics.step_batch import CommandBatch
from predrain.data.drain import Drain, DrainState, Mechanic
from predrain.data.ids import OsdId


def update_drain_progress(view: ClusterView, drain: Drain, context: Context) -> Drain:
    """Return the drain with its progress counted.

    A PG has moved once its source is in neither `up` nor `acting`. A PG is lost if its source is gone and no
    OSD took its place.
    """
    if not drain.intent.moves_data:
        return primary_affinity.count_progress(view, drain)
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


def pace_drain(
    view: ClusterView, drain: Drain, policy: Policy, context: Context
) -> tuple[Drain, Pace, tuple[Pg, ...]]:
    """Return the drain with its new budget, the pace, and its PGs on their way.

    The signal is the highest latency ratio among the sources and targets of its plan.
    """
    flying = in_flight(drain, context)
    busy = set(drain.osds) | {OsdId(osd) for pg in flying for osd in (*pg.up, *pg.acting)}
    working = at_work(drain)
    now = compute_pace(
        drain.progress.budget,
        len(flying),
        compute_latency_signal(view, working | busy, busy),
        policy,
        urgent=is_drain_urgent(drain, context.outlooks, policy),
        before=drain.progress.asked,
        started=drain.progress.started,
        why_one=explain_unreliable_throttle(view, working) or "",
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
    """Return the next commands of the drain's mechanic, within the pace and the allowance."""
    plan, movement = drain.plan, STRATEGIES[drain.intent].movement
    if plan is None or movement is None:
        return CommandBatch(outdated=True)
    if plan.mechanic is Mechanic.REBUILD and view.osds[osd].primary_affinity > 0:
        return primary_affinity.build_affinity_step(
            view, osd, 0.0, allowance
        )  # the latency does not matter: this step lowers it
    ratio = "no signal" if now.ratio is None else f"{now.ratio:.2f}x"
    if now.tempo is Tempo.PULL_BACK and plan.mechanic in WALKING and flying:
        return pull_back(view, drain, context, allowance)
    if now.is_on_hold:
        return CommandBatch(waits_for=f"clients wait {ratio} as long as an hour before: {now.tempo.value}")
    return movement.next_batch(view, drain, plan, osd, now, flying, context, allowance)
