"""Guards: each judges one danger and touches nothing; all are asked, and every refusal is shown.

In: view, drain, policy, context. Out: Pass or Refuse (code, sentence, numbers). Explained one by one in
`docs/reference/guards.md`.
"""

from __future__ import annotations

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.verdicts import ANY, BEFORE, MOVING, Guard, Pass, Refuse
from predrain.actions.guards.belief import AUTOMATIC, mass_suspicion, trust
from predrain.actions.guards.cluster import (
    autoscale,
    halt,
    operator_flags,
    plan,
    scrub_errors,
    stale_view,
    unhealthy,
    unknown_release,
    upgrade,
    whole,
)
from predrain.actions.guards.hands import balancer, conflict, lease, window
from predrain.actions.guards.safety import budget, redundancy, safe_to_destroy, space
from predrain.actions.guards.torrent import throttle
from predrain.data.drain import Drain, DrainState

__all__ = ["AUTOMATIC", "GUARDS", "HALT_ENDS", "INSISTABLE", "Guard", "Pass", "Refuse", "judge", "refusals"]

_S = DrainState
_UNDER_WAY = MOVING | {_S.CANCELLING}
_PINNING = frozenset({_S.DRAINING, _S.HOLDING})

HALT_ENDS = "Lift it with `predrain unhalt`."

GUARDS: tuple[Guard, ...] = (
    Guard("halt", halt, ANY, HALT_ENDS),
    Guard("stale-view", stale_view, ANY, "It goes on when fresh statistics of the mgr have come."),
    Guard(
        "unhealthy", unhealthy, ANY, "It goes on when Ceph has recovered; bring up or put out what is down."
    ),
    Guard("whole", whole, ANY, "It goes on when every such PG has all its members."),
    Guard("operator-flags", operator_flags, ANY, "Unset it to let data move."),
    Guard(
        "plan",
        plan,
        BEFORE | MOVING,
        "A plan is made anew when the map changes, and from time to time; cancel the drain if none can be made.",
    ),
    Guard(
        "redundancy",
        redundancy,
        BEFORE | _UNDER_WAY,
        "It goes on when the missing copies are made, or the shared device has fewer members.",
    ),
    Guard("space", space, BEFORE | MOVING, "It goes on when there is room: add OSDs or delete data."),
    Guard("budget", budget, BEFORE | MOVING, "It goes on when one of the others ends.", insistable=True),
    Guard(
        "throttle", throttle, BEFORE | MOVING, "It goes on when upmaps may be used or backfills are bounded."
    ),
    Guard(
        "mass-suspicion",
        mass_suspicion,
        BEFORE,
        "It goes on when fewer are newly bad; or ask for the drain yourself.",
        insistable=True,
    ),
    Guard(
        "autoscale",
        autoscale,
        BEFORE | _UNDER_WAY,
        "Wait for it; the drain goes on when the pool has its number of PGs.",
        insistable=True,
    ),
    Guard("upgrade", upgrade, BEFORE | _UNDER_WAY, "It goes on when the upgrade is over.", insistable=True),
    Guard(
        "scrub-errors",
        scrub_errors,
        BEFORE | _UNDER_WAY,
        "It goes on when the PGs are repaired.",
        insistable=True,
    ),
    Guard("unknown-release", unknown_release, ANY, "Update predrain, or cancel the drain."),
    Guard("window", window, BEFORE | _UNDER_WAY, "It goes on when the hours begin.", insistable=True),
    Guard("lease", lease, ANY, "It goes on under the controller that holds the lease."),
    Guard("conflict", conflict, BEFORE | MOVING, "Cancel the drain, or set it back."),
    Guard("balancer", balancer, _PINNING, "It goes on when the balancer is off again."),
    Guard(
        "trust",
        trust,
        BEFORE,
        "It goes on when the forecast carries it; or ask for the drain yourself.",
        insistable=True,
    ),
    Guard(
        "safe-to-destroy",
        safe_to_destroy,
        frozenset({_S.DRAINED, _S.VERIFIED}),
        "It goes on when no PG needs the disk any more.",
    ),
)
"""In the order in which their refusals are shown."""
INSISTABLE = frozenset(guard.code for guard in GUARDS if guard.insistable)
"""Codes of the guards that a person may insist past."""


def judge(
    view: ClusterView, drain: Drain, policy: Policy, context: Context
) -> tuple[tuple[str, Pass | Refuse], ...]:
    """Every guard that has a say in the drain's state, with its answer."""
    return tuple(
        (guard.code, guard(view, drain, policy, context)) for guard in GUARDS if drain.state in guard.during
    )


def refusals(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> tuple[Refuse, ...]:
    """All that refuses now; empty when the drain may go on. What a person insists past is left out here, and nowhere
    else.
    """
    return tuple(
        answer
        for _, answer in judge(view, drain, policy, context)
        if isinstance(answer, Refuse) and not answer.overruled
    )
