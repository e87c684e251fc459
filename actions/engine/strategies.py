"""What a drain, a fill and a quarantine want, where they differ. `engine.decide` is one state machine for all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import found
from predrain.actions.core.in_flight import Allowance
from predrain.actions.core.pacing import Pace
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.engine.quarantine import inherited
from predrain.actions.engine.withdrawal import explain_withdrawal, find_recovery
from predrain.actions.mechanics.batch import CommandBatch
from predrain.actions.mechanics.emptying import (
    find_osd_to_empty,
    give_back_upmaps,
    has_upmaps_to_give_back,
    has_weight_or_upmaps_left,
    next_emptying_batch,
    take_weight_away,
)
from predrain.actions.mechanics.filling import find_osd_to_fill, next_filling_batch
from predrain.actions.planning.emptying import plan_emptying
from predrain.actions.planning.filling import plan_filling
from predrain.actions.planning.quarantine import plan_quarantine
from predrain.data.drain import Drain, Intent, Plan
from predrain.data.ids import OsdId, PgId
from predrain.data.setting import OsdAffinity, OsdCrushWeight, OsdOverride, OsdSetting, Setting


def list_moved_pgs(plan: Plan) -> Collection[PgId]:
    """PGs of which a shard moves."""
    return {move.pg for move in plan.moves}


def list_led_pgs(plan: Plan) -> Collection[PgId]:
    """PGs that another OSD is to lead."""
    return plan.stirred


@dataclass(frozen=True, slots=True)
class Movement:
    """How the data of one intent moves."""

    find_current_osd: Callable[[ClusterView, Drain, Context], OsdId | None]
    """The OSD that data leaves, or comes to, now; None when it is done with all of them."""
    next_batch: Callable[[ClusterView, Drain, Plan, OsdId, Pace, int, Context, Allowance], CommandBatch]
    """What the drain sends next, with so many PGs on their way."""
    has_last_steps: Callable[[ClusterView, Drain, Policy, Context, Allowance], bool]
    """Whether anything is left to do once no data has to move any more."""
    last_batch: Callable[[ClusterView, Drain, Pace, int, Context, Allowance], CommandBatch]
    """What is sent of that next, with so many PGs on their way."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """What the drains of one intent want."""

    noted: tuple[type[OsdSetting], ...]
    """Values of each OSD that are written down as found when the drain begins."""
    explain_withdrawal: Callable[[ClusterView, Drain, Policy, Context], str]
    """Why a proposal is withdrawn; empty while it stands."""
    draw_plan: Callable[[ClusterView, Drain, Policy, Context], Plan]
    """Raises CannotPlace where the map cannot be computed."""
    list_planned_pgs: Callable[[Plan], Collection[PgId]]
    """The PGs that a plan counts."""
    movement: Movement | None
    """None: no data moves."""


_REPLACE = Strategy(
    noted=(OsdOverride, OsdCrushWeight),
    explain_withdrawal=explain_withdrawal,
    draw_plan=plan_emptying,
    list_planned_pgs=list_moved_pgs,
    movement=Movement(find_osd_to_empty, next_emptying_batch, has_upmaps_to_give_back, give_back_upmaps),
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
    """The drain with the values of its OSDs as they are now, and with what a quarantine of them hands over."""
    watched = [kind(osd) for osd in drain.osds for kind in STRATEGIES[drain.intent].noted]
    as_found: dict[Setting, str] = {key: found(view, key) for key in watched}
    saved, ours = inherited(drain, context)
    return replace(drain, saved={**as_found, **saved, **drain.saved}, ours={**as_found, **ours, **drain.ours})
