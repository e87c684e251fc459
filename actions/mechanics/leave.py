"""The end of a cancel that a person gave up: what moves no data goes back, what would move some is left and listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import found, is_in_map, is_ours, same
from predrain.actions.core.in_flight import Allowance
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.throttles import shared, to_give_back
from predrain.actions.core.verdicts import Refuse
from predrain.actions.mechanics import affinity
from predrain.actions.mechanics.batch import CommandBatch, back
from predrain.actions.mechanics.restore import Return
from predrain.data.drain import Drain
from predrain.data.setting import Before, OsdAffinity, OsdFlag, Setting, UpmapItem, Yielded

SENDS_NOTHING = frozenset({"halt", "lease", "unknown-release"})
"""Guards that hold the end of a given-up cancel. It moves no data, so no other may keep the balancer off."""


def next_surrender(
    view: ClusterView,
    drain: Drain,
    policy: Policy,
    context: Context,
    allowance: Allowance,
    refused: Sequence[Refuse],
) -> Return:
    """The next step: settings and flags at once, primary affinity in rungs while no guard refuses, and not for longer
    than `policy.ways_out_after`; then the end, which says what is left.
    """
    given_up = drain.given_up
    assert given_up is not None
    left = list_left_standing(view, drain, context)
    settings = to_give_back(view, drain, context)
    settings |= {key: drain.saved[key] for key in left if isinstance(key, OsdFlag)}
    if settings:
        return Return(drain, back(settings))
    waits = context.now - given_up.at < policy.ways_out_after
    for key in (key for key in left if isinstance(key, OsdAffinity) and waits):
        if refused or not context.memory.settled(view):
            return Return(
                drain, CommandBatch(waits_for="its primary affinity goes back when the guards pass")
            )
        return Return(drain, affinity.next_rung(view, key.osd, float(drain.saved[key]), allowance))
    told = describe_left_standing(left)
    return Return(drain, CommandBatch(decided=f"the cancel was given up by {given_up.by}; {told}"), done=True)


def list_left_standing(view: ClusterView, drain: Drain, context: Context) -> dict[Setting, tuple[str, str]]:
    """What the drain set and did not put back, but for settings of the whole cluster: by key, what stands and what was
    found. What somebody else set since, and what is not in the map any more, is not among it.
    """
    return {
        key: (now, drain.saved[key])
        for key in drain.ours
        if not isinstance(key, Before | Yielded)
        and not shared(key)
        and key in drain.saved
        and is_in_map(view, key)
        and not same(key, now := found(view, key), drain.saved[key])
        and is_ours(
            (drain, *context.list_claimants(drain)) if isinstance(key, UpmapItem) else (drain,), key, now
        )
    }


def claim_what_stands(view: ClusterView, drain: Drain) -> Drain:
    """The drain with claims to what the map shows, where its last command did not arrive: it is not sent again."""
    unarrived = {
        key
        for key in drain.ours
        if (before := drain.ours.get(Before(key))) is not None
        and is_in_map(view, key)
        and same(key, before, found(view, key))
    }
    ours = {
        key: found(view, key) if key in unarrived else value
        for key, value in drain.ours.items()
        if not isinstance(key, Before) or key.setting not in unarrived
    }
    return replace(drain, ours=ours)


def describe_left_standing(left: Mapping[Setting, tuple[str, str]]) -> str:
    """What is left, each with what was found, as the end of a sentence."""
    told = ", ".join(
        f"{key} at {now or 'no upmap'} (was {was or 'no upmap'})" for key, (now, was) in left.items()
    )
    return f"left as they stand: {told}" if told else "nothing is left"
