"""Guards: each one judges one danger and changes nothing. All are asked, and every refusal is shown.

In: view, drain, policy, context. Out: Pass or Refuse (code, sentence, numbers). `docs/reference/guards.md`
explains each guard.
"""

from __future__ import annotations

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.guard_verdicts import ANY, BEFORE, MOVING, Guard, Pass, Refuse
from predrain.actions.core.situation import Context
from predrain.actions.guards.authority_guards import (
    check_balancer,
    check_lease,
    check_move_window,
    check_setting_conflict,
)
from predrain.actions.guards.cluster_guards import (
    check_cluster_health,
    check_halt,
    check_pg_autoscale,
    check_pg_members,
    check_plan_refusals,
    operator_flags,
    scrub_errors,
    stale_view,
    unknown_release,
    upgrade,
)
from predrain.actions.guards.forecast_guards import AUTOMATIC, check_trust, mass_suspicion
from predrain.actions.guards.safety_guards import (
    check_capacity,
    check_drain_budget,
    check_redundancy,
    check_throttle,
    safe_to_destroy,
)
from predrain.data.drain import Drain, DrainState
from predrain.data.hold_reason import HoldReason

__all__ = [
    "AUTOMATIC",
    "GUARDS",
    "HALT_ENDS",
    "INSISTABLE",
    "TRANSIENT",
    "Guard",
    "Pass",
    "Refuse",
    "evaluate_guards",
    "list_refusals",
]

_S = DrainState
_UNDER_WAY = MOVING | {_S.CANCELLING}
_PINNING = frozenset({_S.DRAINING, _S.HOLDING})

HALT_ENDS = "Lift it with `predrain unhalt`."

GUARDS: tuple[Guard, ...] = (
    Guard(HoldReason.HALT, check_halt, ANY, HALT_ENDS),
    Guard(
        HoldReason.STALE_VIEW,
        stale_view,
        ANY,
        "It goes on when fresh statistics of the mgr have come.",
        transient=True,
    ),
    Guard(
        HoldReason.UNHEALTHY,
        check_cluster_health,
        ANY,
        "It goes on when Ceph has recovered; bring up or put out what is down.",
        transient=True,
    ),
    Guard(HoldReason.WHOLE, check_pg_members, ANY, "It goes on when every such PG has all its members."),
    Guard(HoldReason.OPERATOR_FLAGS, operator_flags, ANY, "Unset it to let data move."),
    Guard(
        HoldReason.PLAN,
        check_plan_refusals,
        BEFORE | MOVING,
        "A plan is made again when the map changes, and from time to time; cancel the drain if none can be made.",
    ),
    Guard(
        HoldReason.REDUNDANCY,
        check_redundancy,
        BEFORE | _UNDER_WAY,
        "It goes on when the missing copies are made, or the shared device has fewer members.",
    ),
    Guard(
        HoldReason.SPACE,
        check_capacity,
        BEFORE | MOVING,
        "It goes on when there is room: add OSDs or delete data.",
    ),
    Guard(
        HoldReason.BUDGET,
        check_drain_budget,
        BEFORE | MOVING,
        "It goes on when one of the others ends.",
        insistable=True,
        transient=True,
    ),
    Guard(
        HoldReason.THROTTLE,
        check_throttle,
        BEFORE | MOVING,
        "It goes on when upmaps may be used or backfills are bounded.",
    ),
    Guard(
        HoldReason.MASS_SUSPICION,
        mass_suspicion,
        BEFORE,
        "It goes on when fewer are newly bad; or ask for the drain yourself.",
        insistable=True,
    ),
    Guard(
        HoldReason.AUTOSCALE,
        check_pg_autoscale,
        BEFORE | _UNDER_WAY,
        "Wait for it; the drain goes on when the pool has its number of PGs.",
        insistable=True,
        transient=True,
    ),
    Guard(
        HoldReason.UPGRADE,
        upgrade,
        BEFORE | _UNDER_WAY,
        "It goes on when the upgrade is over.",
        insistable=True,
    ),
    Guard(
        HoldReason.SCRUB_ERRORS,
        scrub_errors,
        BEFORE | _UNDER_WAY,
        "It goes on when the PGs are repaired.",
        insistable=True,
    ),
    Guard(HoldReason.UNKNOWN_RELEASE, unknown_release, ANY, "Update predrain, or cancel the drain."),
    Guard(
        HoldReason.WINDOW,
        check_move_window,
        BEFORE | _UNDER_WAY,
        "It goes on when the hours begin.",
        insistable=True,
        transient=True,
    ),
    Guard(
        HoldReason.LEASE,
        check_lease,
        ANY,
        "It goes on under the controller that holds the lease.",
        transient=True,
    ),
    Guard(HoldReason.CONFLICT, check_setting_conflict, BEFORE | MOVING, "Cancel the drain, or set it back."),
    Guard(
        HoldReason.BALANCER,
        check_balancer,
        _PINNING,
        "It goes on when the balancer is off again.",
        transient=True,
    ),
    Guard(
        HoldReason.TRUST,
        check_trust,
        BEFORE,
        "It goes on when the forecast carries it; or ask for the drain yourself.",
        insistable=True,
    ),
    Guard(
        HoldReason.SAFE_TO_DESTROY,
        safe_to_destroy,
        frozenset({_S.DRAINED, _S.VERIFIED}),
        "It goes on when no PG needs the disk any more.",
    ),
)
"""The guards in the order in which their refusals are shown."""
INSISTABLE = frozenset(guard.code for guard in GUARDS if guard.insistable)
"""Codes of the guards that a person may overrule."""
TRANSIENT = frozenset(guard.code for guard in GUARDS if guard.transient)
"""Codes of the guards whose refusal ends by itself in time."""


def evaluate_guards(
    view: ClusterView, drain: Drain, policy: Policy, context: Context
) -> tuple[tuple[HoldReason, Pass | Refuse], ...]:
    """Return every guard that applies in the drain's state, with its answer."""
    return tuple(
        (guard.code, guard(view, drain, policy, context)) for guard in GUARDS if drain.state in guard.during
    )


def list_refusals(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> tuple[Refuse, ...]:
    """Return all refusals that hold the drain now; empty if it may go on.

    Guards that a person overrules are left out here, and nowhere else.
    """
    return tuple(
        answer
        for _, answer in evaluate_guards(view, drain, policy, context)
        if isinstance(answer, Refuse) and not answer.overruled
    )
