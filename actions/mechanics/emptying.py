"""How a drain goes on: which OSD is emptied now, what its mechanic sends next, and what an emptied disk still needs."""

from __future__ import annotations

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.capacity import remaining
from predrain.actions.core.in_flight import Allowance, stirrable
from predrain.actions.core.pacing import Pace
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.mechanics import override, retire, walk, weight
from predrain.actions.mechanics.batch import CommandBatch
from predrain.actions.mechanics.desired_upmaps import find_stray_upmaps
from predrain.actions.mechanics.restore import release_strays
from predrain.data.drain import Drain, Mechanic, Plan
from predrain.data.ids import OsdId


def find_osd_to_empty(view: ClusterView, drain: Drain, context: Context) -> OsdId | None:
    """The OSD that is emptied now: one by one, in the order of the drain; None when all are empty."""
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
    """What the plan's mechanic sends next. flying: PGs of the drain that are on their way."""
    starts = allowance.starts(now.budget, flying)
    if plan.mechanic is Mechanic.CRUSH_LADDER:
        if view.osds[osd].crush_weight == 0.0:
            return CommandBatch(waits_for="what is on its way must arrive")
        stirred = stirrable(drain, context)
        restless = context.survey.restless
        return weight.next_rung(
            view, osd, 0.0, allowance, starts, idle=not flying, stirred=stirred, restless=restless
        )
    if plan.mechanic is Mechanic.OVERRIDE_LADDER:
        if view.osds[osd].reweight == 0.0:
            return CommandBatch(waits_for="what is on its way must arrive")
        return override.next_rung(view, osd, allowance, starts)
    if any(move.source == osd for move in remaining(view, drain)):
        if starts < 1:
            one = f": one PG at a time, for {now.why_one}" if now.why_one else ""
            return CommandBatch(waits_for=f"{flying} on their way, budget {now.budget}{one}")
        return walk.next_pins(view, drain, osd, context, allowance, starts)
    names_it = context.survey.of_osd(osd)
    if any(osd in pg.up for pg in names_it):
        return CommandBatch(outdated=True)
    if names_it or flying:
        return CommandBatch(waits_for="the last PGs must arrive")
    return override.finish(view, osd, allowance)


def has_upmaps_to_give_back(
    view: ClusterView, drain: Drain, _policy: Policy, context: Context, allowance: Allowance
) -> bool:
    """Whether upmaps of an emptied disk are not wanted any more, and what they hold has room elsewhere."""
    return bool(find_stray_upmaps(view, drain, context, allowance.room))


def give_back_upmaps(
    view: ClusterView, drain: Drain, now: Pace, flying: int, context: Context, allowance: Allowance
) -> CommandBatch:
    """The upmaps of an emptied disk that are not wanted any more go."""
    if now.holds:
        return CommandBatch(waits_for="clients wait longer than an hour before")
    strays = release_strays(view, drain, context, allowance, allowance.starts(now.budget, flying))
    return strays or CommandBatch(waits_for="what is on its way must arrive")


def has_weight_or_upmaps_left(
    view: ClusterView, drain: Drain, policy: Policy, context: Context, allowance: Allowance
) -> bool:
    """Whether a disk that goes for good still has its CRUSH weight, or upmaps that kept other PGs in place can go."""
    if retire.to_retire(view, drain) is not None:
        return True
    return policy.return_pins and retire.returnable(view, drain, context, allowance)


def take_weight_away(
    view: ClusterView, drain: Drain, now: Pace, flying: int, context: Context, allowance: Allowance
) -> CommandBatch:
    """CRUSH weight 0 with nothing moving, for a disk that goes for good; then the upmaps of other PGs go."""
    osd = retire.to_retire(view, drain)
    if osd is not None:
        return retire.next_rung(view, drain, osd, context, allowance)
    if now.holds:
        return CommandBatch(waits_for="clients wait longer than an hour before")
    return retire.release(view, drain, context.survey, allowance, allowance.starts(now.budget, flying))
