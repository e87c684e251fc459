"""Why a proposal is withdrawn, and why a quarantine that nobody asked for ends."""

from __future__ import annotations

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.cost_assessment import weigh_one
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.guards import AUTOMATIC
from predrain.data.drain import Drain
from predrain.data.outlook import Status


def explain_withdrawal(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> str:
    """Why a proposal is withdrawn, for the journal; empty while it stands."""
    osds = [view.osds.get(id_) for id_ in drain.osds]
    if all(osd is None or (not osd.up and osd.reweight == 0) for osd in osds):
        return "the disk is dead and out; there is nothing left to drain"
    return (
        "the outlook has been better for long enough" if _no_longer_bad(view, drain, policy, context) else ""
    )


def _no_longer_bad(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> bool:
    """Whether an automatic proposal has lost its ground: the OSD is no longer slow, or for long enough a drain has not
    paid by its outlook and no rule has called it bad, or, where the outlook gives no chance, the disk has not been bad.
    """
    if drain.asked_by != AUTOMATIC or any(osd in context.slow.osds for osd in drain.osds):
        return False
    now, old = context.now, policy.slow_age_max
    if drain.spare_reads and all(context.slow.well(osd, now, old) for osd in drain.osds):
        return True
    outlook = context.outlooks.get(drain.device) if drain.device is not None else None
    if outlook is None or outlook.severity is Status.UNKNOWN:
        return False
    if outlook.severity is Status.BAD and (outlook.rule_score is not None or outlook.p_fail_30d is None):
        return False
    if outlook.p_fail_30d is not None:
        weighed = weigh_one(view, drain.device, policy, context)
        if weighed is None or weighed.cost.pays:
            return False
        paid = weighed.last_paid_at
        return now - max(drain.created_at, paid or drain.created_at) >= policy.withdraw_after
    return now - drain.created_at >= policy.withdraw_after and outlook.span_hours * 3600 >= (
        policy.withdraw_after.total_seconds()
    )


def find_recovery(drain: Drain, policy: Policy, context: Context) -> str:
    """Why the quarantine may end; empty while the OSD is slow, or nothing is known of it, or a person asked for it."""
    if drain.asked_by != AUTOMATIC:
        return ""
    well = all(context.slow.well(osd, context.now, policy.slow_age_max) for osd in drain.osds)
    return "it answers like its peers again" if well else ""
