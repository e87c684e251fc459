"""From bad outlooks to proposals: which disks, why, and why not."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace
from datetime import datetime
from itertools import chain, count

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.answers import ProposalRefusal, Propose
from predrain.actions.core.policy import Mode, Policy
from predrain.actions.core.priority import riskiest_first
from predrain.actions.core.situation import Context
from predrain.actions.core.state_machine import ENDED
from predrain.actions.core.verdicts import Refuse
from predrain.actions.engine.plan import plan
from predrain.actions.guards import AUTOMATIC
from predrain.actions.guards.belief import mass_suspicion, trust
from predrain.actions.placement.shared_failure import devices_of
from predrain.data.drain import Drain, DrainState, Intent, Progress
from predrain.data.ids import DeviceId, OsdId
from predrain.data.outlook import Status
from predrain.data.refusal import Refusal as Refused


class NoSuchTarget(Refused):
    """A target that is no OSD of the map and no device under one."""

    def __init__(self, target: str) -> None:
        super().__init__(
            f"'{target}' is neither an OSD (osd.N) nor a device of this cluster; "
            "see `predrain cluster status`"
        )


def osds_of(view: ClusterView, device: DeviceId) -> tuple[OsdId, ...]:
    """Every OSD that needs a device, for its data, DB or WAL; lowest first."""
    return tuple(
        sorted(osd.id for osd in view.osds.values() if osd.device == device or device in osd.shared_devices)
    )


def target_of(view: ClusterView, target: str) -> tuple[DeviceId | None, tuple[OsdId, ...]]:
    """The device and OSDs that a person's `osd.N` or device id means. Raises NoSuchTarget."""
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
    """The id of a new drain: its first OSD and the second in which it is made. Where `taken` has that id, the first
    free number from 2 on follows.
    """
    kind = "-quarantine" if intent is Intent.QUARANTINE else ""
    name = f"osd.{osd}{kind}-{now:%Y%m%d-%H%M%S}"
    numbered = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(one for one in numbered if one not in taken)


def drafted(
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
    """A proposed drain with its plan."""
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
    made = plan(view, drain, policy, context)
    pgs = len({move.pg for move in made.moves})
    return replace(drain, plan=made, progress=Progress(planned_pgs=pgs, planned_bytes=made.bytes))


def open_for(
    drains: Iterable[Drain], osds: tuple[OsdId, ...], intent: Intent = Intent.REPLACE
) -> Drain | None:
    """A drain of any of `osds` that has not ended and stands in the way of one of `intent`: a quarantine stands in
    the way of another one only, for a drain takes it over."""
    return next((drain for drain in drains if _stands(drain, osds, intent)), None)


def _stands(drain: Drain, osds: tuple[OsdId, ...], intent: Intent) -> bool:
    gives_way = not drain.intent.moves_data and intent.moves_data
    return not _closed(drain) and bool(set(drain.osds) & set(osds)) and not gives_way


def _closed(drain: Drain) -> bool:
    """Whether nothing of it is to come: it ended, or its disk was filled, of which nothing is to be handed over."""
    return drain.state in ENDED or (drain.intent.fills_osd and drain.state is DrainState.VERIFIED)


def proposals(view: ClusterView, policy: Policy, context: Context) -> tuple[Propose | ProposalRefusal, ...]:
    """One answer for every disk that serves, is bad or worth a drain by its cost, and has no drain yet; nothing in mode
    observe.
    """
    if policy.mode is Mode.OBSERVE or not view.statistics_known:
        return ()
    by_device = serving(view)
    answers: list[Propose | ProposalRefusal] = []
    for device, outlook in sorted(context.outlooks.items()):
        osds, weighed = by_device.get(device, ()), context.weighed.get(device)
        asking = outlook.severity is Status.BAD or (weighed is not None and weighed.cost.pays)
        if not asking or not osds or _spoken_for(context, osds, policy):
            continue
        word = outlook.severity.value
        reason = (
            outlook.reasons[0].sentence if outlook.reasons else f"The outlook is {word} ({outlook.source})."
        )
        if weighed is not None:
            reason = f"{reason} {weighed.cost.sentence}"
        asked = _asked(device, osds, reason, context.now)
        verdicts = (mass_suspicion(view, asked, policy, context), trust(view, asked, policy, context))
        refused = tuple(verdict for verdict in verdicts if isinstance(verdict, Refuse))
        if refused:
            answers.append(ProposalRefusal(device, refused))
        else:
            drain = drafted(view, device, osds, policy, context, asked_by=AUTOMATIC, reason=reason)
            answers.append(Propose(drain))
    return tuple(answers)


def idle(view: ClusterView, drains: Iterable[Drain], context: Context) -> bool:
    """Nothing waits, and no disk serves that is bad or whose drain pays: one that was pulled or has died keeps its
    outlook for ever.
    """
    if any(drain.state not in ENDED for drain in drains):
        return False
    asking = {device for device, outlook in context.outlooks.items() if outlook.severity is Status.BAD}
    asking |= {device for device, disk in context.weighed.items() if disk.cost.pays}
    return not context.slow.osds and (not asking or asking.isdisjoint(serving(view)))


def serving(view: ClusterView) -> dict[DeviceId, tuple[OsdId, ...]]:
    """Devices under OSDs that are up and in, each with those OSDs, lowest first."""
    found: dict[DeviceId, list[OsdId]] = {}
    for osd in view.osds.values():
        for device in devices_of(view, osd.id) if osd.up and osd.reweight > 0 else ():
            found.setdefault(device, []).append(osd.id)
    return {device: tuple(sorted(osds)) for device, osds in found.items()}


def _spoken_for(context: Context, osds: tuple[OsdId, ...], policy: Policy) -> bool:
    return any(
        set(drain.osds) & set(osds)
        and drain.intent.moves_data
        and (
            not _closed(drain)
            or (
                drain.state is DrainState.CANCELLED
                and drain.cancelled_by
                and context.now - drain.updated_at < policy.propose_again_after
            )
        )
        for drain in context.drains
    )


def _asked(device: DeviceId, osds: tuple[OsdId, ...], reason: str, now: datetime) -> Drain:
    return Drain(
        f"osd.{osds[0]}", device, osds, DrainState.PROPOSED, Intent.REPLACE, AUTOMATIC, reason, now, now
    )
