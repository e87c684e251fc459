"""Sentences about drains that several surfaces share: how far one is, how long something takes, which limit stands.

The words that differ by what a drain is for stand in one table, `WORDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from predrain.actions.cluster.port import Reweight
from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import key_of
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import OsdId
from predrain.data.setting import Yielded


@dataclass(frozen=True, slots=True)
class IntentWords:
    """How drains of one intent are told. done: what the disk is when nothing is left to move. emptied: what is seen
    then. counted: what is known at the end. states: the states that are told in other words than their names."""

    noun: str
    done: str
    emptied: str
    counted: str
    states: Mapping[DrainState, str]


_DRAIN = IntentWords("drain", "drained", "no PG names it any more", "every copy is counted elsewhere", {})
WORDS: Mapping[Intent, IntentWords] = {
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
        "it leads no PG",
        "other copies lead its PGs",
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
    """The state of a drain, fill or quarantine, in the words of its intent."""
    return WORDS[intent].states.get(state, state.value.replace("_", " "))


def describe_rest(view: ClusterView, drain: Drain, names: str) -> str:
    """How many PGs are still to go, to come or to come back, and how many are on their way."""
    progress = drain.progress
    left = progress.planned_pgs - progress.moved_pgs - progress.lost_pgs
    if not drain.intent.moves_data:
        return f"{names} leads {_pgs(left)} of its plan"
    on_way = f"{progress.in_flight} on their way"
    if drain.state is DrainState.CANCELLING:
        if not drain.intent.fills_osd and not any(_takes_pgs(view, drain, osd) for osd in drain.osds):
            return f"no PG comes back to {names}, which Ceph has down or out, {on_way}"
        way = "to go back from" if drain.intent.fills_osd else "to come back to"
        return f"{_pgs(_count_returning(view, drain))} {way} {names}, {on_way}"
    where = "to come to" if drain.intent.fills_osd else "left on"
    lost = f", {describe_lost(progress.lost_pgs)}" if progress.lost_pgs else ""
    return f"{_pgs(left)} {where} {names}{lost}, {on_way}"


def name_yielded(free: Drain, drain: Drain) -> str:
    """The settings that `free` leaves to somebody else and `drain` did not yet, with the values that they set."""
    return ", ".join(
        f"{key.setting} at {now}"
        for key, now in free.ours.items()
        if isinstance(key, Yielded) and key not in drain.ours
    )


def describe_lost(pgs: int) -> str:
    """What became of PGs whose source died before they were moved."""
    return f"{_pgs(pgs)} lost a copy on the old disk before it was moved (Ceph rebuilds it)"


def describe_hours(hours: float) -> str:
    """A duration in minutes below two hours, else in hours with one decimal."""
    minutes = hours * 60
    if minutes < 1:
        return "less than a minute"
    return f"{minutes:.0f} min" if hours < 2 else f"{hours:.1f} h"


def describe_estimate(hours: float) -> str:
    """A duration that is only expected."""
    told = describe_hours(hours)
    return told if told.startswith("less than") else f"about {told}"


def describe_limit(limit: float) -> str:
    """The fullness that no target may pass; the cluster's ratios may leave none."""
    return (
        f"limit {limit:.0%}"
        if limit > 0
        else "and the cluster's nearfull and backfillfull ratios leave no room"
    )


def _pgs(number: int) -> str:
    return f"{number} PG{'' if number == 1 else 's'}"


def _takes_pgs(view: ClusterView, drain: Drain, osd: OsdId) -> bool:
    """Whether PGs can come back to the OSD: it is up, and in as soon as this drain gives back a weight that it set."""
    known = view.osds.get(osd)
    return known is not None and known.up and (known.reweight > 0 or key_of(Reweight(osd, 0.0)) in drain.ours)


def _count_returning(view: ClusterView, drain: Drain) -> int:
    """PGs that the map still wants elsewhere than they were before the drain."""
    filled = drain.intent.fills_osd
    return len(
        {
            move.pg
            for move in (drain.plan.moves if drain.plan else ())
            if (pg := view.pgs.get(move.pg)) is not None
            and (move.target in pg.up if filled else move.source not in pg.up)
        }
    )
