"""Guards: each judges one danger and touches nothing; all are asked, and every refusal is shown.

In: view, drain, policy, context. Out: Pass or Refuse (code, sentence, numbers). Explained one by one in
`docs/reference/guards.md`.
"""

from __future__ import annotations

from actions.cluster.view import ClusterView
from actions.context import Context
from actions.guards.belief import AUTOMATIC, mass_suspicion, trust
from actions.guards.cluster import (
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
from actions.guards.hands import balancer, conflict, lease, window
from actions.guards.safety import budget, redundancy, safe_to_destroy, space
from actions.guards.torrent import throttle
from actions.guards.verdict import ANY, BEFORE, MOVING, Guard, Pass, Refuse
from actions.policy import Policy
from data.drain import Drain, DrainState

__all__ = ["AUTOMATIC", "GUARDS", "Guard", "Pass", "Refuse", "judge", "refusals"]

_S = DrainState
_UNDER_WAY = MOVING | {_S.CANCELLING}
_PINNING = frozenset({_S.DRAINING, _S.HOLDING})

GUARDS: tuple[Guard, ...] = (
    Guard("halt", halt, ANY),
    Guard("stale-view", stale_view, ANY),
    Guard("unhealthy", unhealthy, ANY),
    Guard("whole", whole, ANY),
    Guard("operator-flags", operator_flags, ANY),
    Guard("plan", plan, BEFORE | MOVING),
    Guard("redundancy", redundancy, BEFORE | _UNDER_WAY),
    Guard("space", space, BEFORE | MOVING),
    Guard("budget", budget, BEFORE | MOVING),
    Guard("throttle", throttle, BEFORE | MOVING),
    Guard("mass-suspicion", mass_suspicion, BEFORE),
    Guard("autoscale", autoscale, BEFORE | _UNDER_WAY),
    Guard("upgrade", upgrade, BEFORE | _UNDER_WAY),
    Guard("scrub-errors", scrub_errors, BEFORE | _UNDER_WAY),
    Guard("unknown-release", unknown_release, ANY),
    Guard("window", window, BEFORE | _UNDER_WAY),
    Guard("lease", lease, ANY),
    Guard("conflict", conflict, BEFORE | MOVING),
    Guard("balancer", balancer, _PINNING),
    Guard("trust", trust, BEFORE),
    Guard("safe-to-destroy", safe_to_destroy, frozenset({_S.DRAINED, _S.VERIFIED})),
)
"""In the order in which their refusals are shown."""


def judge(
    view: ClusterView, drain: Drain, policy: Policy, context: Context
) -> tuple[tuple[str, Pass | Refuse], ...]:
    """Every guard that has a say in the drain's state, with its answer."""
    return tuple(
        (guard.code, guard(view, drain, policy, context)) for guard in GUARDS if drain.state in guard.during
    )


def refusals(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> tuple[Refuse, ...]:
    """All that refuses now; empty when the drain may go on."""
    return tuple(answer for _, answer in judge(view, drain, policy, context) if isinstance(answer, Refuse))
