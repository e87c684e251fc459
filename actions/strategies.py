"""What a drain, a fill and a quarantine want, where they differ. `actions.decide` is one state machine for all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from actions.cluster.view import ClusterView
from actions.context import Context
from actions.ledger import found
from actions.policy import Policy
from actions.proposals import no_longer_wanted
from actions.quarantine import find_recovery, inherited
from data.drain import Drain, Intent, Plan
from data.ids import PgId
from data.setting import OsdAffinity, OsdCrushWeight, OsdOverride, OsdSetting, Setting


def list_moved_pgs(plan: Plan) -> Collection[PgId]:
    """PGs of which a shard moves."""
    return {move.pg for move in plan.moves}


def list_led_pgs(plan: Plan) -> Collection[PgId]:
    """PGs that another OSD is to lead."""
    return plan.stirred


def _find_moot_quarantine(_view: ClusterView, drain: Drain, policy: Policy, context: Context) -> str:
    return find_recovery(drain, policy, context)


@dataclass(frozen=True, slots=True)
class Strategy:
    """What the drains of one intent want."""

    noted: tuple[type[OsdSetting], ...]
    """Values of each OSD that are written down as found when the drain begins."""
    find_moot: Callable[[ClusterView, Drain, Policy, Context], str]
    """Why a proposal is withdrawn; empty while it stands."""
    list_planned_pgs: Callable[[Plan], Collection[PgId]]
    """The PGs that a plan counts."""


_MOVES_DATA = Strategy(
    noted=(OsdOverride, OsdCrushWeight),
    find_moot=no_longer_wanted,
    list_planned_pgs=list_moved_pgs,
)
STRATEGIES: Final[Mapping[Intent, Strategy]] = {
    Intent.REPLACE: _MOVES_DATA,
    Intent.REMOVE: _MOVES_DATA,
    Intent.FILL: _MOVES_DATA,
    Intent.QUARANTINE: Strategy(
        noted=(OsdAffinity,),
        find_moot=_find_moot_quarantine,
        list_planned_pgs=list_led_pgs,
    ),
}


def note_as_found(view: ClusterView, drain: Drain, context: Context) -> Drain:
    """The drain with the values of its OSDs as they are now, and with what a quarantine of them hands over."""
    watched = [kind(osd) for osd in drain.osds for kind in STRATEGIES[drain.intent].noted]
    as_found: dict[Setting, str] = {key: found(view, key) for key in watched}
    saved, ours = inherited(drain, context)
    return replace(drain, saved={**as_found, **saved, **drain.saved}, ours={**as_found, **ours, **drain.ours})
