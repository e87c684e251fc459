"""Proposals for OSDs that are slow: a quarantine at once, and a drain for one that has been slow for long."""

from __future__ import annotations

from dataclasses import replace

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.answers import ProposalRefusal, Propose
from predrain.actions.core.policy import Mode, Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.state_machine import ENDED
from predrain.actions.engine.proposals import drafted
from predrain.actions.guards import AUTOMATIC
from predrain.data.drain import DrainState, Intent
from predrain.data.ids import OsdId
from predrain.data.slow import SlowOsd


def propose_for_slow_osds(
    view: ClusterView, policy: Policy, context: Context
) -> tuple[Propose | ProposalRefusal, ...]:
    """A quarantine for every OSD that is slow and has none, and a drain for every one that has been so for long."""
    if policy.mode is Mode.OBSERVE or not view.statistics_known:
        return ()
    answers: list[Propose | ProposalRefusal] = []
    for osd, slow in sorted(context.slow.osds.items()):
        if osd not in view.osds or not view.osds[osd].up:
            continue
        answers.extend(
            _draft_proposal(view, osd, slow, intent, policy, context)
            for intent in (Intent.QUARANTINE, Intent.REPLACE)
            if _is_wanted(osd, slow, intent, policy, context)
        )
    return tuple(answers)


def _is_wanted(osd: OsdId, slow: SlowOsd, intent: Intent, policy: Policy, context: Context) -> bool:
    if intent is not Intent.QUARANTINE and not (slow.lasting and slow.lasted >= policy.slow_drain_after):
        return False
    for drain in context.drains:
        if osd not in drain.osds:
            continue
        same_kind = drain.intent.moves_data == intent.moves_data
        if drain.state not in ENDED and (same_kind or intent is Intent.QUARANTINE):
            return False
        refused = drain.state is DrainState.CANCELLED and drain.cancelled_by and same_kind
        if refused and context.now - drain.updated_at < policy.propose_again_after:
            return False
    return True


def _draft_proposal(
    view: ClusterView, osd: OsdId, slow: SlowOsd, intent: Intent, policy: Policy, context: Context
) -> Propose | ProposalRefusal:
    device = view.osds[osd].device
    reason = f"{slow.reason}."
    if intent is not Intent.QUARANTINE:
        days = slow.lasted.total_seconds() / 86_400
        reason = (
            f"{slow.reason}: for {days:.1f} days, limit {policy.slow_drain_after.total_seconds() / 86_400:g}."
        )
    drain = drafted(view, device, (osd,), policy, context, asked_by=AUTOMATIC, reason=reason, intent=intent)
    return Propose(replace(drain, spare_reads=intent is not Intent.QUARANTINE))
