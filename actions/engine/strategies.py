"""The differences between a drain, a fill and a quarantine, with the reasons to withdraw a proposal and to end an
automatic quarantine. `engine.decision` is one state machine for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.claimed_settings import read_setting_value
from predrain.actions.core.cost_assessment import weigh_one
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.in_flight import Allowance
from predrain.actions.core.pacing import Pace
from predrain.actions.core.situation import Context
from predrain.actions.engine.quarantine_steps import collect_inherited_affinities
from predrain.actions.guards import AUTOMATIC
from predrain.actions.mechanics.drain_steps import (
    find_osd_to_empty,
    find_osd_to_fill,
    give_back_settings,
    has_settings_to_give_back,
    has_weight_or_upmaps_left,
    next_emptying_batch,
    next_filling_batch,
    take_weight_away,
)
from predrain.actions.mechanics.step_batch import CommandBatch
from predrain.actions.planning.drain_plan import plan_emptying
from predrain.actions.planning.fill_plan import plan_filling
from predrain.actions.planning.quarantine_plan import plan_quarantine
from predrain.data.drain import Drain, Intent, Plan
from predrain.data.ids import OsdId, PgId
from predrain.data.outlook import Status
from predrain.data.setting import OsdAffinity, OsdCrushWeight, OsdOverride, OsdSetting, Setting


def explain_withdrawal(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> str:
    """Return the reason why a proposal is withdrawn, for the journal; empty while the proposal stands."""
    osds = [view.osds.get(id_) for id_ in drain.osds]
    if all(osd is None or (not osd.up and osd.reweight == 0) for osd in osds):
        return "the disk is dead and out; there is nothing left to drain"
    return (
        "the outlook has been better for long enough" if _no_longer_bad(view, drain, policy, context) else ""
    )


def _no_longer_bad(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> bool:
    """Return whether an automatic proposal has lost its reason.

    A proposal made because of slowness has lost it once the OSD is no longer slow. Any other proposal has
    lost it if no rule judges the disk bad now and a drain has not paid for `policy.withdraw_after`. If the
    outlook gives no chance, the disk must have been other than bad for that time.
    """
    if drain.asked_by != AUTOMATIC or any(osd in context.slow.osds for osd in drain.osds):
        return False
    now, old = context.now, policy.slow_age_max
    if drain.spare_reads and all(context.slow.is_known_healthy(osd, now, old) for osd in drain.osds):
        return True
    outlook = context.outlooks.get(drain.device) if drain.device is not None else None
    if outlook is None or outlook.severity is Status.UNKNOWN:
        return False
    if outlook.severity is Status.BAD and (outlook.rule_score is not None or outlook.p_fail_30d is None):
        return False
    if outlook.p_fail_30d is not None:
        weighed = weigh_one(view, drain.device, policy, context)
        if weighed is None or weighed.cost.pays:
            return False
        paid = weighed.last_paid_at
        return now - max(drain.created_at, paid or drain.created_at) >= policy.withdraw_after
    return now - drain.created_at >= policy.withdraw_after and outlook.span_hours * 3600 >= (
        policy.withdraw_after.total_seconds()
    )


def find_recovery(drain: Drain, policy: Policy, context: Context) -> str:
    """Return why the quarantine may end.

    The text is empty while the OSD is slow, if its latency is not known, or if a person asked for the
    quarantine.
    """
    if drain.asked_by != AUTOMATIC:
        return ""
    well = all(context.slow.is_known_healthy(osd, context.now, policy.slow_age_max) for osd in drain.osds)
    return "it answers like its peers again" if well else ""


def list_moved_pgs(plan: Plan) -> Collection[PgId]:
    """Return the PGs of which a shard moves."""
    return {move.pg for move in plan.moves}


def list_led_pgs(plan: Plan) -> Collection[PgId]:
    """Return the PGs that get another primary."""
    return plan.affected_pgs


@dataclass(frozen=True, slots=True)
class Movement:
    """The functions that move the data of one intent."""

    find_current_osd: Callable[[ClusterView, Drain, Context], OsdId | None]
    """Return the OSD that data leaves or enters now; None when all of them are done."""
    next_batch: Callable[[ClusterView, Drain, Plan, OsdId, Pace, int, Context, Allowance], CommandBatch]
    """Return the next commands of the drain, for the given number of PGs on their way."""
    has_last_steps: Callable[[ClusterView, Drain, Policy, Context, Allowance], bool]
    """Return whether steps remain after all data has moved."""
    last_batch: Callable[[ClusterView, Drain, Pace, int, Context, Allowance], CommandBatch]
    """Return the next commands of these last steps, for the given number of PGs on their way."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """The parts of a decision that depend on a drain's intent."""

    noted: tuple[type[OsdSetting], ...]
    """The settings of each OSD that are stored as found when the drain begins."""
    explain_withdrawal: Callable[[ClusterView, Drain, Policy, Context], str]
    """Return the reason why a proposal is withdrawn; empty while it stands."""
    draw_plan: Callable[[ClusterView, Drain, Policy, Context], Plan]
    """Return the plan. Raises CannotPlace if the map cannot be computed."""
    list_planned_pgs: Callable[[Plan], Collection[PgId]]
    """Return the PGs that count in the plan's progress."""
    movement: Movement | None
    """None if no data moves."""


_REPLACE = Strategy(
    noted=(OsdOverride, OsdCrushWeight),
    explain_withdrawal=explain_withdrawal,
    draw_plan=plan_emptying,
    list_planned_pgs=list_moved_pgs,
    movement=Movement(find_osd_to_empty, next_emptying_batch, has_settings_to_give_back, give_back_settings),
)
STRATEGIES: Final[Mapping[Intent, Strategy]] = {
    Intent.REPLACE: _REPLACE,
    Intent.REMOVE: replace(
        _REPLACE,
        movement=Movement(
            find_osd_to_empty, next_emptying_batch, has_weight_or_upmaps_left, take_weight_away
        ),
    ),
    Intent.FILL: replace(
        _REPLACE,
        draw_plan=plan_filling,
        movement=Movement(find_osd_to_fill, next_filling_batch, has_weight_or_upmaps_left, take_weight_away),
    ),
    Intent.QUARANTINE: Strategy(
        noted=(OsdAffinity,),
        explain_withdrawal=lambda _view, drain, policy, context: find_recovery(drain, policy, context),
        draw_plan=plan_quarantine,
        list_planned_pgs=list_led_pgs,
        movement=None,
    ),
}


def note_as_found(view: ClusterView, drain: Drain, context: Context) -> Drain:
    """Return the drain with its OSDs' present values as found, and with the settings that a quarantine hands
    over.
    """
    watched = [kind(osd) for osd in drain.osds for kind in STRATEGIES[drain.intent].noted]
    as_found: dict[Setting, str] = {key: read_setting_value(view, key) for key in watched}
    saved, ours = collect_inherited_affinities(drain, context)
    return replace(drain, saved={**as_found, **saved, **drain.saved}, ours={**as_found, **ours, **drain.ours})
