"""Quarantine of a slow OSD: it leads no PG until it answers like its peers again; a drain is proposed when it does not.

A quarantine is a drain that moves no data (`Intent.QUARANTINE`), under the same guards, journal and peering budget.
It lasts while the OSD is slow: its state is `draining` with nothing left to do. A drain of the same OSD takes it over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from actions.cluster.view import ClusterView
from actions.context import Context, engaged
from actions.flight import Allowance
from actions.folding import held
from actions.guards import AUTOMATIC, Refuse, refusals
from actions.guards.verdict import count
from actions.ledger import ABSENT, BEFORE, booked, found, same
from actions.mechanics import affinity
from actions.mechanics.batch import Batch
from actions.mechanics.restore import next_return
from actions.planning.sparing import spared
from actions.policy import Mode, Policy
from actions.proposals import drafted
from actions.states import BEGUN, ENDED, Event, after, can
from actions.steps import Answer, Hold, Propose, Refusal, Step, Turn, Wait
from data.drain import Drain, DrainState, Intent, Progress
from data.ids import OsdId
from data.slow import SlowOsd

S = DrainState
GOAL = 0.0


def key_of(osd: OsdId) -> str:
    """Where the ledger keeps an OSD's primary affinity."""
    return f"osd.{osd}/affinity"


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


def answer(
    view: ClusterView, drain: Drain, policy: Policy, context: Context, allowance: Allowance
) -> tuple[Answer, ...]:
    """What a quarantine does now."""
    drain = _progressed(view, drain)
    heir = _heir(drain, context)
    if heir is not None and engaged(heir) and _has_all(heir, drain) and can(drain, Event.TAKEN_OVER):
        given = replace(drain, ours={})
        return (_turn(view, given, Event.TAKEN_OVER, f"taken over by drain {heir.id}", context),)
    if drain.state in (S.PAUSED, S.FAILED):
        return ()
    if drain.state is S.PROPOSED:
        return _proposed(view, drain, policy, context)
    refused = refusals(view, drain, policy, context)
    if policy.mode is Mode.OBSERVE and drain.state is not S.CANCELLING:
        refused = (
            Refuse("mode", "The mode is observe: nothing is changed. Set mode propose or act."),
            *refused,
        )
    if refused:
        return (Hold(held(drain, refused, context.now), refused),)
    if not context.memory.settled(view):
        return (Wait(drain, "what was sent last must show in the statistics"),)
    if heir is not None:
        return (Wait(drain, f"drain {heir.id} takes it over"),)
    return _guarded(view, drain, policy, context, allowance)


def inherited(drain: Drain, context: Context) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """(saved, ours) of affinities that standing quarantines of the drain's OSDs hold, for it to hold from now on."""
    saved: dict[str, str] = {}
    ours: dict[str, str] = {}
    for other in context.drains:
        if other.intent is not Intent.QUARANTINE or other.id == drain.id or not engaged(other):
            continue
        keys = {key_of(osd) for osd in drain.osds} & other.ours.keys()
        saved.update((key, other.saved[key]) for key in keys)
        ours.update((k, v) for k, v in other.ours.items() if k.removesuffix(BEFORE) in keys)
    return saved, ours


def given_back(view: ClusterView, drain: Drain) -> dict[str, str]:
    """Affinities that an emptied drain still holds down, with what they were: it leads nothing, so no PG peers."""
    held = {key: drain.saved[key] for key in drain.ours if key.endswith("/affinity") and key in drain.saved}
    return {
        key: was
        for key, was in held.items()
        if found(view, key) != ABSENT and not same(key, found(view, key), was)
    }


def _proposed(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> tuple[Answer, ...]:
    if well := _recovered(drain, policy, context):
        return (_turn(view, drain, Event.WITHDRAW, well, context),)
    if policy.mode is not Mode.ACT or drain.asked_by != AUTOMATIC:
        return ()
    refused = refusals(view, drain, policy, context)
    if refused:
        holding = held(drain, refused, context.now)
        return (Hold(holding, refused),) if holding is not drain else ()
    kept = replace(drain, policy=policy.snapshot())
    return (_turn(view, kept, Event.APPROVE, "approve: mode act, and every guard passes", context),)


def _guarded(
    view: ClusterView, drain: Drain, policy: Policy, context: Context, allowance: Allowance
) -> tuple[Answer, ...]:
    match drain.state:
        case S.APPROVED:
            made = spared(view, drain, policy)
            drain = replace(drain, plan=made, progress=Progress(planned_pgs=len(made.stirred)))
            if made.refusals:
                refused = refusals(view, drain, policy, context)
                return (Hold(held(drain, refused, context.now), refused),)
            as_found = {key_of(osd): found(view, key_of(osd)) for osd in drain.osds}
            drain = replace(drain, saved={**as_found, **drain.saved}, ours={**as_found, **drain.ours})
            return (_turn(view, drain, Event.START, f"{BEGUN}{made.why}", context),)
        case S.PREPARING:
            return (_turn(view, drain, Event.PREPARED, "nothing else has to be held", context),)
        case S.HOLDING:
            return (_turn(view, drain, Event.PASSED, "every guard passes again", context),)
        case S.CANCELLING:
            way = next_return(view, drain, policy, context, allowance, max(0, allowance.peering))
            if way.done:
                given = replace(way.drain, ours={})
                return (_turn(view, given, Event.RESTORED, way.batch.decided, context),)
            return _sent(view, way.drain, way.batch, context)
        case _:
            if well := _recovered(drain, policy, context):
                return (_turn(view, drain, Event.RECOVERED, well, context),)
            return _sent(view, drain, _lowered(view, drain, allowance), context)


def _lowered(view: ClusterView, drain: Drain, allowance: Allowance) -> Batch:
    for osd in (osd for osd in drain.osds if osd in view.osds):
        batch = affinity.next_rung(view, osd, GOAL, allowance)
        if batch.commands or view.osds[osd].primary_affinity > GOAL:
            return batch
    return Batch(waits_for="it leads no PG; it stays so until it answers like its peers again")


def _recovered(drain: Drain, policy: Policy, context: Context) -> str:
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
        same_kind = (drain.intent is Intent.QUARANTINE) == (intent is Intent.QUARANTINE)
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


def _heir(drain: Drain, context: Context) -> Drain | None:
    """A drain that empties an OSD of this quarantine, or is about to."""
    heirs = (
        other
        for other in context.drains
        if other.intent is not Intent.QUARANTINE
        and set(other.osds) & set(drain.osds)
        and (engaged(other) or other.state is S.APPROVED)
    )
    return next(heirs, None)


def _has_all(heir: Drain, drain: Drain) -> bool:
    return all(key in heir.ours for key in drain.ours if not key.endswith(BEFORE))


def _progressed(view: ClusterView, drain: Drain) -> Drain:
    if drain.plan is None or not view.statistics_known or not drain.plan.stirred:
        return drain
    leading = {pg for osd in drain.osds if osd in view.osds for pg in affinity.led(view, osd)}
    gone = sum(1 for pg in drain.plan.stirred if pg not in leading)
    progress = replace(drain.progress, planned_pgs=len(drain.plan.stirred), moved_pgs=gone)
    return drain if progress == drain.progress else replace(drain, progress=progress)


def _seen(view: ClusterView, drain: Drain) -> str:
    left = count(drain.progress.planned_pgs - drain.progress.moved_pgs, "PG")
    return f"epoch {view.epoch}: {', '.join(f'osd.{osd}' for osd in drain.osds)} leads {left} of its plan"


def _turn(view: ClusterView, drain: Drain, event: Event, decided: str, context: Context) -> Turn:
    return Turn(after(drain, event, context.now, why=decided), _seen(view, drain), decided)


def _sent(view: ClusterView, drain: Drain, batch: Batch, context: Context) -> tuple[Answer, ...]:
    if not batch.commands:
        return (Wait(drain, batch.waits_for or "what is on its way must arrive"),)
    ready = booked(drain, view, batch.commands)
    ready = replace(ready, revision=drain.revision + 1, updated_at=context.now, held_by=())
    return (Step(ready, batch.commands, _seen(view, drain), batch.decided, batch.pgs),)
