"""The quarantine of a slow OSD: the OSD is no PG's primary until it answers like its peers again.

A drain is proposed if it does not recover. A quarantine is a drain that moves no data (`Intent.QUARANTINE`),
under the same guards, journal and peering budget. It lasts while the OSD is slow: its state is `draining`
with nothing left to do. A drain of the same OSD takes it over. `actions.engine.decision` calls this module only
where a quarantine differs from a drain.
"""

from __future__ import annotations

from collections.abc import Mapping

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.claimed_settings import ABSENT, is_same_setting_value, read_setting_value
from predrain.actions.core.in_flight import Allowance
from predrain.actions.core.situation import Context, is_drain_engaged
from predrain.actions.mechanics import primary_affinity
from predrain.actions.mechanics.step_batch import CommandBatch
from predrain.data.drain import Drain, DrainState
from predrain.data.setting import OsdAffinity, Setting, ValueBefore, strip_note

S = DrainState
GOAL = 0.0


def collect_inherited_affinities(
    drain: Drain, context: Context
) -> tuple[Mapping[Setting, str], Mapping[Setting, str]]:
    """Return (saved, ours) of the affinities that active quarantines of the drain's OSDs hold.

    The drain holds these affinities from now on.
    """
    saved: dict[Setting, str] = {}
    ours: dict[Setting, str] = {}
    for other in context.drains:
        if other.intent.moves_data or other.id == drain.id or not is_drain_engaged(other):
            continue
        keys = {OsdAffinity(osd) for osd in drain.osds} & other.ours.keys()
        saved.update((key, other.saved[key]) for key in keys)
        ours.update((k, v) for k, v in other.ours.items() if strip_note(k) in keys)
    return saved, ours


def given_back(view: ClusterView, drain: Drain) -> dict[Setting, str]:
    """Return the affinities that an emptied drain still holds down, with the values that they had.

    The emptied OSD is no PG's primary, so giving them back makes no PG peer.
    """
    held = {
        key: drain.saved[key] for key in drain.ours if isinstance(key, OsdAffinity) and key in drain.saved
    }
    return {
        key: was
        for key, was in held.items()
        if read_setting_value(view, key) != ABSENT
        and not is_same_setting_value(key, read_setting_value(view, key), was)
    }


def lower_affinity(view: ClusterView, drain: Drain, allowance: Allowance) -> CommandBatch:
    """Return the next step towards an OSD that is no PG's primary."""
    for osd in (osd for osd in drain.osds if osd in view.osds):
        batch = primary_affinity.build_affinity_step(view, osd, GOAL, allowance)
        if batch.commands or view.osds[osd].primary_affinity > GOAL:
            return batch
    return CommandBatch(waits_for="it is the primary of no PG, until it answers like its peers again")


def find_heir(drain: Drain, context: Context) -> Drain | None:
    """Find a drain that empties an OSD of this quarantine or will soon; None if `drain` is no quarantine."""
    if drain.intent.moves_data:
        return None
    heirs = (
        other
        for other in context.drains
        if other.intent.moves_data
        and set(other.osds) & set(drain.osds)
        and (is_drain_engaged(other) or other.state is S.APPROVED)
    )
    return next(heirs, None)


def holds_all(heir: Drain, drain: Drain) -> bool:
    """Return whether the heir holds all settings that the quarantine has set."""
    return is_drain_engaged(heir) and all(
        key in heir.ours for key in drain.ours if not isinstance(key, ValueBefore)
    )
