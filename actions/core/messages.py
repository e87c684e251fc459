"""Sentences about drains that the page, the CLI and REST share: the progress, durations, the limit in force.

The words that differ by a drain's intent are in one table, `INTENT_TEXTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from predrain.actions.cluster.cluster_port import Reweight
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.claimed_settings import key_of
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import OsdId
from predrain.data.messages import format_count
from predrain.data.setting import YieldedValue


@dataclass(frozen=True, slots=True)
class IntentWords:
    """The words for drains of one intent.

    done: the state of the disk when no data is left to move. emptied: the observation at that time. counted:
    the result of the final count. states: the names of states that tell the intent by themselves.
    """

    noun: str
    done: str
    emptied: str
    counted: str
    states: Mapping[DrainState, str]


_DRAIN = IntentWords(
    "drain",
    "drained",
    "no PG names it any more",
    "every copy is counted elsewhere",
    {DrainState.DRAINING: "draining", DrainState.DRAINED: "drained"},
)
INTENT_TEXTS: Mapping[Intent, IntentWords] = {
    Intent.REPLACE: _DRAIN,
    Intent.REMOVE: _DRAIN,
    Intent.FILL: IntentWords(
        "fill",
        "filled",
        "it has its share",
        "the disk has its share, and every copy is counted",
        {
            DrainState.DRAINING: "filling",
            DrainState.DRAINED: "filled",
            DrainState.VERIFIED: "filled and verified",
            DrainState.HANDED_OVER: "in service",
            DrainState.CANCELLING: "being emptied again",
        },
    ),
    Intent.QUARANTINE: IntentWords(
        "quarantine",
        "spared",
        "it is the primary of no PG",
        "other OSDs are the primaries of its PGs",
        {
            DrainState.DRAINING: "quarantined",
            DrainState.DRAINED: "quarantined",
            DrainState.VERIFIED: "quarantined",
            DrainState.CANCELLING: "being released",
            DrainState.CANCELLED: "released",
        },
    ),
}


def describe_state(state: DrainState, intent: Intent) -> str:
    """Return the name of a state for people, in the words of the intent (drain, fill or quarantine)."""
    return INTENT_TEXTS[intent].states.get(state, state.value.replace("_", " "))


def state_names_intent(state: DrainState, intent: Intent) -> bool:
    """Return whether the name of the state tells the intent: "filling" does, and "paused" does not."""
    return state in INTENT_TEXTS[intent].states


def describe_rest(view: ClusterView, drain: Drain, names: str) -> str:
    """Describe how many PGs must still go, come or come back, and how many are on their way."""
    progress = drain.progress
    left = progress.planned_pgs - progress.moved_pgs - progress.lost_pgs
    if not drain.intent.moves_data:
        return f"{names} leads {format_count(left, 'PG')} of its plan"
    on_way = f"{progress.in_flight} on their way"
    if drain.state is DrainState.CANCELLING:
        if not drain.intent.fills_osd and not any(_takes_pgs(view, drain, osd) for osd in drain.osds):
            return f"no PG comes back to {names}, which Ceph has down or out, {on_way}"
        way = "to go back from" if drain.intent.fills_osd else "to come back to"
        return f"{format_count(_count_returning(view, drain), 'PG')} {way} {names}, {on_way}"
    where = "to come to" if drain.intent.fills_osd else "left on"
    lost = f", {describe_lost(progress.lost_pgs)}" if progress.lost_pgs else ""
    return f"{format_count(left, 'PG')} {where} {names}{lost}, {on_way}"


def name_yielded(free: Drain, drain: Drain) -> str:
    """List the settings that another person or process took over in `free` but not yet in `drain`, with their
    values.
    """
    return ", ".join(
        f"{key.setting} at {now}"
        for key, now in free.ours.items()
        if isinstance(key, YieldedValue) and key not in drain.ours
    )


def describe_lost(pgs: int) -> str:
    """Describe the PGs whose source died before they were moved."""
    return f"{format_count(pgs, 'PG')} lost a copy on the old disk before it was moved (Ceph rebuilds it)"


def describe_hours(hours: float) -> str:
    """Format a duration: minutes below two hours, otherwise hours with one decimal."""
    minutes = hours * 60
    if minutes < 1:
        return "less than a minute"
    return f"{minutes:.0f} min" if hours < 2 else f"{hours:.1f} h"


def describe_estimate(hours: float) -> str:
    """Format an expected duration."""
    told = describe_hours(hours)
    return told if hours * 60 < 1 else f"about {told}"


def _takes_pgs(view: ClusterView, drain: Drain, osd: OsdId) -> bool:
    """Return whether PGs can come back to the OSD.

    The OSD must be up. It must also be in, or be in as soon as this drain gives back the weight that it set.
    """
    known = view.osds.get(osd)
    return known is not None and known.up and (known.reweight > 0 or key_of(Reweight(osd, 0.0)) in drain.ours)


def _count_returning(view: ClusterView, drain: Drain) -> int:
    """Count the PGs that the map still places elsewhere than before the drain."""
    filled = drain.intent.fills_osd
    return len(
        {
            move.pg
            for move in (drain.plan.moves if drain.plan else ())
            if (pg := view.pgs.get(move.pg)) is not None
            and (move.target in pg.up if filled else move.source not in pg.up)
        }
    )
