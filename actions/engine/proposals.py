"""Proposals from bad outlooks and for slow OSDs: the disks to drain, with the reasons for and against.

A slow OSD gets a quarantine at once, and a drain if it stays slow for long.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain, count

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.osd_layout import find_osd_layout
from predrain.actions.core.decision_answers import DrainProposal, ProposalRefusal
from predrain.actions.core.drain_policy import Mode, Policy
from predrain.actions.core.guard_verdicts import Refuse
from predrain.actions.core.outlook_index import find_outlook_index
from predrain.actions.core.priority import riskiest_first
from predrain.actions.core.situation import Context
from predrain.actions.core.state_machine import ENDED
from predrain.actions.engine.plan_building import plan_drain
from predrain.actions.guards import AUTOMATIC
from predrain.actions.guards.forecast_guards import check_trust, mass_suspicion
from predrain.data.drain import Drain, DrainState, Intent, NoSuchTarget, Progress
from predrain.data.ids import DeviceId, OsdId
from predrain.data.slow_osd import SlowOsd


def osds_of(view: ClusterView, device: DeviceId) -> tuple[OsdId, ...]:
    """Return every OSD that needs a device for its data, DB or WAL, lowest first."""
    return tuple(sorted(set(find_osd_layout(view.osds).osds_by_device.get(device, ()))))


def target_of(view: ClusterView, target: str) -> tuple[DeviceId | None, tuple[OsdId, ...]]:
    """Return the device and OSDs that a person's `osd.N` or device id names. Raises NoSuchTarget."""
    name = target.strip()
    number = name.removeprefix("osd.")
    if number.isascii() and number.isdigit() and OsdId(int(number)) in view.osds:
        osd = view.osds[OsdId(int(number))]
        return osd.device, (osd.id,)
    osds = osds_of(view, DeviceId(name))
    if not osds:
        raise NoSuchTarget(target)
    return DeviceId(name), osds


def name_drain(osd: OsdId, intent: Intent, now: datetime, taken: Container[str]) -> str:
    """Return the id of a new drain: its first OSD and its creation time in seconds.

    If `taken` has that id, the first free number from 2 on is appended.
    """
    kind = "-quarantine" if intent is Intent.QUARANTINE else ""
    name = f"osd.{osd}{kind}-{now:%Y%m%d-%H%M%S}"
    numbered = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(one for one in numbered if one not in taken)


def draft_drain(
    view: ClusterView,
    device: DeviceId | None,
    osds: tuple[OsdId, ...],
    policy: Policy,
    context: Context,
    *,
    asked_by: str,
    reason: str,
    intent: Intent = Intent.REPLACE,
    spare_reads: bool = False,
) -> Drain:
    """Return a proposed drain with its plan."""
    drain = Drain(
        id=name_drain(osds[0], intent, context.now, {known.id for known in context.drains}),
        device=device,
        osds=riskiest_first(view, osds, context.outlooks),
        state=DrainState.PROPOSED,
        intent=intent,
        asked_by=asked_by,
        reason=reason,
        created_at=context.now,
        updated_at=context.now,
        revision=1,
        spare_reads=spare_reads,
    )
    made = plan_drain(view, drain, policy, context)
    pgs = len({move.pg for move in made.moves})
    return replace(drain, plan=made, progress=Progress(planned_pgs=pgs, planned_bytes=made.bytes))


def open_for(
    drains: Iterable[Drain], osds: tuple[OsdId, ...], intent: Intent = Intent.REPLACE
) -> Drain | None:
    """Return a drain of any of `osds` that has not ended and blocks a new one of `intent`; None if there is
    none.

    A quarantine blocks only another quarantine, because a drain takes it over.
    """
    return next((drain for drain in drains if _blocks(drain, intent) and set(drain.osds) & set(osds)), None)


def find_blocking_drains(drains: Iterable[Drain], intent: Intent = Intent.REPLACE) -> dict[OsdId, Drain]:
    """Return what `open_for` returns for each OSD alone; OSDs without such a drain are left out."""
    found: dict[OsdId, Drain] = {}
    for drain in drains:
        if _blocks(drain, intent):
            for osd in drain.osds:
                found.setdefault(osd, drain)
    return found


def _blocks(drain: Drain, intent: Intent) -> bool:
    gives_way = not drain.intent.moves_data and intent.moves_data
    return not _is_drain_closed(drain) and not gives_way


def _is_drain_closed(drain: Drain) -> bool:
    """Return whether the drain has no more steps: it ended, or its disk was filled, which needs no hand-over."""
    return drain.state in ENDED or (drain.intent.fills_osd and drain.state is DrainState.VERIFIED)


def propose_drains(
    view: ClusterView, policy: Policy, context: Context
) -> tuple[DrainProposal | ProposalRefusal, ...]:
    """Return an answer for each serving disk without a drain that is bad or whose drain pays; none in mode
    observe.
    """
    if policy.mode is Mode.OBSERVE or not view.statistics_known:
        return ()
    by_device = find_serving_devices(view)
    answers: list[DrainProposal | ProposalRefusal] = []
    for device in sorted(_list_asking_devices(context) & by_device.keys()):
        outlook, osds, weighed = context.outlooks[device], by_device[device], context.weighed.get(device)
        if _spoken_for(context, osds, policy):
            continue
        word = outlook.severity.value
        reason = (
            outlook.reasons[0].sentence if outlook.reasons else f"The outlook is {word} ({outlook.source})."
        )
        if weighed is not None:
            reason = f"{reason} {weighed.cost.sentence}"
        asked = _build_candidate_drain(device, osds, reason, context.now)
        verdicts = (mass_suspicion(view, asked, policy, context), check_trust(view, asked, policy, context))
        refused = tuple(verdict for verdict in verdicts if isinstance(verdict, Refuse))
        if refused:
            answers.append(ProposalRefusal(device, refused))
        else:
            drain = draft_drain(view, device, osds, policy, context, asked_by=AUTOMATIC, reason=reason)
            answers.append(DrainProposal(drain))
    return tuple(answers)


def is_engine_idle(view: ClusterView, drains: Iterable[Drain], context: Context) -> bool:
    """Return whether no drain is open and no serving disk is bad, slow or worth a drain.

    Only disks that serve count, because a disk that was pulled or has died keeps its outlook for ever.
    """
    if any(drain.state not in ENDED for drain in drains):
        return False
    return not context.slow.osds and _list_asking_devices(context).isdisjoint(find_serving_devices(view))


def _list_asking_devices(context: Context) -> frozenset[DeviceId]:
    """Return the devices that are bad, or whose drain pays."""
    paying = {device for device, disk in context.weighed.items() if disk.cost.pays}
    return find_outlook_index(context.outlooks).bad | (paying & context.outlooks.keys())


def find_serving_devices(view: ClusterView) -> Mapping[DeviceId, tuple[OsdId, ...]]:
    """Return the devices under OSDs that are up and in, each with those OSDs, lowest first."""
    return find_osd_layout(view.osds).serving_devices


def _spoken_for(context: Context, osds: tuple[OsdId, ...], policy: Policy) -> bool:
    return any(
        set(drain.osds) & set(osds)
        and drain.intent.moves_data
        and (
            not _is_drain_closed(drain)
            or (
                drain.state is DrainState.CANCELLED
                and drain.cancelled_by
                and context.now - drain.updated_at < policy.proposal_cooldown
            )
        )
        for drain in context.drains
    )


def _build_candidate_drain(device: DeviceId, osds: tuple[OsdId, ...], reason: str, now: datetime) -> Drain:
    return Drain(
        f"osd.{osds[0]}", device, osds, DrainState.PROPOSED, Intent.REPLACE, AUTOMATIC, reason, now, now
    )


def propose_for_slow_osds(
    view: ClusterView, policy: Policy, context: Context
) -> tuple[DrainProposal | ProposalRefusal, ...]:
    """Propose a quarantine for each slow OSD without one, and a drain for each OSD that has been slow for
    long.
    """
    if policy.mode is Mode.OBSERVE or not view.statistics_known:
        return ()
    answers: list[DrainProposal | ProposalRefusal] = []
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
    if intent is not Intent.QUARANTINE and not (
        slow.lasting and slow.slow_duration >= policy.slow_drain_after
    ):
        return False
    for drain in context.drains:
        if osd not in drain.osds:
            continue
        same_kind = drain.intent.moves_data == intent.moves_data
        if drain.state not in ENDED and (same_kind or intent is Intent.QUARANTINE):
            return False
        refused = drain.state is DrainState.CANCELLED and drain.cancelled_by and same_kind
        if refused and context.now - drain.updated_at < policy.proposal_cooldown:
            return False
    return True


def _draft_proposal(
    view: ClusterView, osd: OsdId, slow: SlowOsd, intent: Intent, policy: Policy, context: Context
) -> DrainProposal | ProposalRefusal:
    device = view.osds[osd].device
    reason = f"{slow.reason}."
    if intent is not Intent.QUARANTINE:
        days = slow.slow_duration.total_seconds() / 86_400
        reason = (
            f"{slow.reason}: for {days:.1f} days, limit {policy.slow_drain_after.total_seconds() / 86_400:g}."
        )
    drain = draft_drain(
        view, device, (osd,), policy, context, asked_by=AUTOMATIC, reason=reason, intent=intent
    )
    return DrainProposal(replace(drain, spare_reads=intent is not Intent.QUARANTINE))
