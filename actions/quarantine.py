"""Quarantine of a slow OSD: it leads no PG until it answers like its peers again; a drain is proposed when it does not.

A quarantine is a drain that moves no data (`Intent.QUARANTINE`), under the same guards, journal and peering budget.
It lasts while the OSD is slow: its state is `draining` with nothing left to do. A drain of the same OSD takes it over.
`actions.decide` asks here only where a quarantine wants something else than a drain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from actions.cluster.view import ClusterView
from actions.context import Context, engaged
from actions.flight import Allowance
from actions.guards import AUTOMATIC
from actions.ledger import ABSENT, found, same
from actions.mechanics import affinity
from actions.mechanics.batch import Batch
from actions.policy import Mode, Policy
from actions.proposals import drafted
from actions.states import ENDED
from actions.steps import Propose, Refusal
from data.drain import Drain, DrainState, Intent
from data.ids import OsdId
from data.setting import Before, OsdAffinity, Setting, strip_note
from data.slow import SlowOsd

S = DrainState
GOAL = 0.0


def proposals(view: ClusterView, policy: Policy, context: Context) -> tuple[Propose | Refusal, ...]:
    """A quarantine for every OSD that is slow and has none, and a drain for every one that has been so for long."""
    if policy.mode is Mode.OBSERVE or not view.statistics_known:
        return ()
    answers: list[Propose | Refusal] = []
    for osd, slow in sorted(context.slow.osds.items()):
        if osd not in view.osds or not view.osds[osd].up:
            continue
        answers.extend(
            _asked(view, osd, slow, intent, policy, context)
            for intent in (Intent.QUARANTINE, Intent.REPLACE)
            if _wanted(osd, slow, intent, policy, context)
        )
    return tuple(answers)


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


def lower_affinity(view: ClusterView, drain: Drain, allowance: Allowance) -> Batch:
    """The next step towards an OSD that leads no PG."""
    for osd in (osd for osd in drain.osds if osd in view.osds):
        batch = affinity.next_rung(view, osd, GOAL, allowance)
        if batch.commands or view.osds[osd].primary_affinity > GOAL:
            return batch
    return Batch(waits_for="it leads no PG; it stays so until it answers like its peers again")


def find_recovery(drain: Drain, policy: Policy, context: Context) -> str:
    """Why the quarantine may end; empty while the OSD is slow, or nothing is known of it, or a person asked for it."""
    if drain.asked_by != AUTOMATIC:
        return ""
    well = all(context.slow.well(osd, context.now, policy.slow_age_max) for osd in drain.osds)
    return "it answers like its peers again" if well else ""


def _wanted(osd: OsdId, slow: SlowOsd, intent: Intent, policy: Policy, context: Context) -> bool:
    if intent is not Intent.QUARANTINE and not (slow.lasting and slow.lasted >= policy.slow_drain_after):
        return False
    for drain in context.drains:
        if osd not in drain.osds:
            continue
        same_kind = drain.intent.moves_data == intent.moves_data
        if drain.state not in ENDED and (same_kind or intent is Intent.QUARANTINE):
            return False
        refused = drain.state is S.CANCELLED and drain.cancelled_by and same_kind
        if refused and context.now - drain.updated_at < policy.propose_again_after:
            return False
    return True


def _asked(
    view: ClusterView, osd: OsdId, slow: SlowOsd, intent: Intent, policy: Policy, context: Context
) -> Propose | Refusal:
    device = view.osds[osd].device
    reason = f"{slow.reason}."
    if intent is not Intent.QUARANTINE:
        days = slow.lasted.total_seconds() / 86_400
        reason = (
            f"{slow.reason}: for {days:.1f} days, limit {policy.slow_drain_after.total_seconds() / 86_400:g}."
        )
    drain = drafted(view, device, (osd,), policy, context, asked_by=AUTOMATIC, reason=reason, intent=intent)
    return Propose(replace(drain, spare_reads=intent is not Intent.QUARANTINE))


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
