"""The end of a cancel that a person gave up: settings that move no data go back; the others are left and
listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.claimed_settings import (
    is_in_map,
    is_ours,
    is_same_setting_value,
    read_setting_value,
)
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.guard_verdicts import Refuse
from predrain.actions.core.held_throttles import is_cluster_setting, to_give_back
from predrain.actions.core.in_flight import Allowance
from predrain.actions.core.situation import Context
from predrain.actions.mechanics import primary_affinity
from predrain.actions.mechanics.restore import RestoreProgress
from predrain.actions.mechanics.step_batch import CommandBatch, build_restore_batch
from predrain.data.drain import Drain
from predrain.data.hold_reason import HoldReason
from predrain.data.setting import OsdAffinity, OsdFlag, Setting, UpmapItem, ValueBefore, YieldedValue

SENDS_NOTHING = frozenset({HoldReason.HALT, HoldReason.LEASE, HoldReason.UNKNOWN_RELEASE})
"""Guards that hold the end of a given-up cancel. It moves no data, so no other guard may keep the balancer
off.
"""


def next_surrender(
    view: ClusterView,
    drain: Drain,
    policy: Policy,
    context: Context,
    allowance: Allowance,
    refused: Sequence[Refuse],
) -> RestoreProgress:
    """Return the next step of the end.

    Options and flags go back at once. The primary affinity goes back in steps while no guard refuses, but for
    `policy.ways_out_after` at most. The last answer ends the drain and lists what is left.
    """
    given_up = drain.given_up
    assert given_up is not None
    left = list_left_standing(view, drain, context)
    settings = to_give_back(view, drain, context)
    settings |= {key: drain.saved[key] for key in left if isinstance(key, OsdFlag)}
    if settings:
        return RestoreProgress(drain, build_restore_batch(settings))
    waits = context.now - given_up.at < policy.ways_out_after
    for key in (key for key in left if isinstance(key, OsdAffinity) and waits):
        if refused or not context.memory.is_settled(view):
            return RestoreProgress(
                drain, CommandBatch(waits_for="its primary affinity goes back when the guards pass")
            )
        return RestoreProgress(
            drain, primary_affinity.build_affinity_step(view, key.osd, float(drain.saved[key]), allowance)
        )
    told = describe_left_standing(left)
    return RestoreProgress(
        drain, CommandBatch(decided=f"the cancel was given up by {given_up.by}; {told}"), done=True
    )


def list_left_standing(view: ClusterView, drain: Drain, context: Context) -> dict[Setting, tuple[str, str]]:
    """Return the settings that the drain set and did not put back, each with the present and the found value.

    Settings of the whole cluster are not among them. Settings that another party has set since, or that are
    no longer in the map, are not among them either.
    """
    return {
        key: (now, drain.saved[key])
        for key in drain.ours
        if not isinstance(key, ValueBefore | YieldedValue)
        and not is_cluster_setting(key)
        and key in drain.saved
        and is_in_map(view, key)
        and not is_same_setting_value(key, now := read_setting_value(view, key), drain.saved[key])
        and is_ours(
            (drain, *context.list_claimants(drain)) if isinstance(key, UpmapItem) else (drain,), key, now
        )
    }


def claim_what_stands(view: ClusterView, drain: Drain) -> Drain:
    """Return the drain with its claims set to the map's values where its last command did not arrive.

    The command is not sent again.
    """
    unarrived = {
        key
        for key in drain.ours
        if (before := drain.ours.get(ValueBefore(key))) is not None
        and is_in_map(view, key)
        and is_same_setting_value(key, before, read_setting_value(view, key))
    }
    ours = {
        key: read_setting_value(view, key) if key in unarrived else value
        for key, value in drain.ours.items()
        if not isinstance(key, ValueBefore) or key.setting not in unarrived
    }
    return replace(drain, ours=ours)


def describe_left_standing(left: Mapping[Setting, tuple[str, str]]) -> str:
    """Describe the settings that are left, each with its found value, as the end of a sentence."""
    told = ", ".join(
        f"{key} at {now or 'no upmap'} (was {was or 'no upmap'})" for key, (now, was) in left.items()
    )
    return f"left as they stand: {told}" if told else "nothing is left"
