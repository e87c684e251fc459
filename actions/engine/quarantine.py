"""Quarantine of a slow OSD: it leads no PG until it answers like its peers again; a drain is proposed when it does not.

A quarantine is a drain that moves no data (`Intent.QUARANTINE`), under the same guards, journal and peering budget.
It lasts while the OSD is slow: its state is `draining` with nothing left to do. A drain of the same OSD takes it over.
`actions.engine.decide` asks here only where a quarantine wants something else than a drain.
"""

from __future__ import annotations

from collections.abc import Mapping

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import ABSENT, found, same
from predrain.actions.core.in_flight import Allowance
from predrain.actions.core.situation import Context, engaged
from predrain.actions.mechanics import affinity
from predrain.actions.mechanics.batch import CommandBatch
from predrain.data.drain import Drain, DrainState
from predrain.data.setting import Before, OsdAffinity, Setting, strip_note

S = DrainState
GOAL = 0.0


def inherited(drain: Drain, context: Context) -> tuple[Mapping[Setting, str], Mapping[Setting, str]]:
    """(saved, ours) of affinities that standing quarantines of the drain's OSDs hold, for it to hold from now on."""
    saved: dict[Setting, str] = {}
    ours: dict[Setting, str] = {}
    for other in context.drains:
        if other.intent.moves_data or other.id == drain.id or not engaged(other):
            continue
        keys = {OsdAffinity(osd) for osd in drain.osds} & other.ours.keys()
        saved.update((key, other.saved[key]) for key in keys)
        ours.update((k, v) for k, v in other.ours.items() if strip_note(k) in keys)
    return saved, ours


def given_back(view: ClusterView, drain: Drain) -> dict[Setting, str]:
    """Affinities that an emptied drain still holds down, with what they were: it leads nothing, so no PG peers."""
    held = {
        key: drain.saved[key] for key in drain.ours if isinstance(key, OsdAffinity) and key in drain.saved
    }
    return {
        key: was
        for key, was in held.items()
        if found(view, key) != ABSENT and not same(key, found(view, key), was)
    }


def lower_affinity(view: ClusterView, drain: Drain, allowance: Allowance) -> CommandBatch:
    """The next step towards an OSD that leads no PG."""
    for osd in (osd for osd in drain.osds if osd in view.osds):
        batch = affinity.next_rung(view, osd, GOAL, allowance)
        if batch.commands or view.osds[osd].primary_affinity > GOAL:
            return batch
    return CommandBatch(waits_for="it leads no PG; it stays so until it answers like its peers again")


def find_heir(drain: Drain, context: Context) -> Drain | None:
    """A drain that empties an OSD of this quarantine, or is about to. None for whatever is no quarantine."""
    if drain.intent.moves_data:
        return None
    heirs = (
        other
        for other in context.drains
        if other.intent.moves_data
        and set(other.osds) & set(drain.osds)
        and (engaged(other) or other.state is S.APPROVED)
    )
    return next(heirs, None)


def holds_all(heir: Drain, drain: Drain) -> bool:
    """Whether the heir keeps all that the quarantine has set."""
    return engaged(heir) and all(key in heir.ours for key in drain.ours if not isinstance(key, Before))
