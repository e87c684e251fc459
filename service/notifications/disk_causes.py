"""Causes made of disks whose severity is warning or bad: similar disks are one cause, the others one per host.

A firmware or a hot rack makes many disks sick at once for one reason. One message per disk would be a storm that
hides the reason. So similar disks are grouped first, by model and reason, then by rack and reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote

from predrain.actions.core.drain_policy import Mode
from predrain.actions.core.messages import INTENT_TEXTS, describe_lost, describe_state
from predrain.actions.guards import AUTOMATIC
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.outlook import Outlook, Status
from predrain.data.reading import Smart
from predrain.service.fleet.probability_text import describe_failure_chance, format_bounded_probability
from predrain.service.notifications.cause import (
    AlertCause,
    AlertCauseKind,
    AlertSnapshot,
    CausePart,
    Severity,
)

HEARD = timedelta(days=7)
"""A disk that was not read for longer is gone, with its host or without."""
LATELY = timedelta(days=1)
MANY = 10
"""More similar disks than this are one cause, whenever each turned."""
SHARE_OF_MODEL = 0.01
"""Disks of a model that turned within a day are one cause, for any reasons, if they are more than MANY and than
this share.
"""
MOSTLY, TIMES = 0.9, 5
"""A firmware is named if a share MOSTLY of the sick disks has it, and disks with it are TIMES times likelier to
be sick.
"""
MANY_IN_A_RACK = 5


@dataclass(frozen=True, slots=True)
class SickDisk:
    """A disk whose severity is warning or bad."""

    device: DeviceId
    severity: Status
    turned: Outlook
    """The outlook with which the disk reached this severity."""
    host: HostName
    rack: str | None
    model: str
    firmware: str | None
    osds: tuple[OsdId, ...]
    drain: Drain | None

    @property
    def reason(self) -> str:
        """The code of the strongest reason."""
        return self.turned.reasons[0].code if self.turned.reasons else self.turned.source

    @property
    def order(self) -> tuple[bool, float, DeviceId]:
        """The sort key: the worst disk first."""
        p = self.turned.p_fail_30d
        return self.severity is not Status.BAD, -(1.0 if p is None else p), self.device


def sick_disks(snapshot: AlertSnapshot) -> Iterator[AlertCause]:
    """Yield one cause per model that sickens fast, per model and reason, per rack and reason, and per host."""

    def alike(group: list[SickDisk]) -> bool:
        lately = sum(snapshot.now - one.turned.as_of <= LATELY for one in group)
        return len(_collect_hosts(group)) > 1 and (
            len(group) > MANY or lately > snapshot.policy.mass_suspicion_min
        )

    def of_one_rack(group: list[SickDisk]) -> bool:
        return group[0].rack is not None and len(_collect_hosts(group)) > 1 and len(group) >= MANY_IN_A_RACK

    def storming(group: list[SickDisk]) -> bool:
        alike = fleet[group[0].model].total()
        return len(_collect_hosts(group)) > 1 and len(group) > max(MANY, SHARE_OF_MODEL * alike)

    fleet = _count_firmware_by_model(snapshot)
    found = sorted(_find_sick_disks(snapshot), key=lambda one: one.order)
    lately = [one for one in found if snapshot.now - one.turned.as_of <= LATELY]
    storms, _ = _split_groups(lately, lambda one: one.model, storming)
    stormy = {one.device for group in storms for one in group}
    left = [one for one in found if one.device not in stormy]
    models, left = _split_groups(left, lambda one: (one.model, one.reason), alike)
    racks, left = _split_groups(left, lambda one: (one.rack, one.reason), of_one_rack)
    hosts, _ = _split_groups(left, lambda one: one.host, lambda _: True)
    yield from (_of_model(group, snapshot, group[0].model, fleet[group[0].model]) for group in storms)
    for group in models:
        yield _of_model(group, snapshot, f"{group[0].model}:{group[0].reason}", fleet[group[0].model])
    yield from (_of_rack(group, snapshot) for group in racks)
    yield from (_of_host(group, snapshot) for group in hosts)


def describe_drain_activity(drain: Drain | None, mode: Mode) -> str:
    """Describe in a sentence what predrain does about a disk; empty if it does nothing."""
    if drain is None:
        return ""
    words = INTENT_TEXTS[drain.intent]
    name, filled = f"{words.noun.capitalize()} {drain.id}", drain.intent is Intent.FILL
    match drain.state:
        case DrainState.PROPOSED if mode is not Mode.ACT or drain.asked_by != AUTOMATIC:
            return f"{name} waits for your approval."
        case DrainState.PROPOSED | DrainState.APPROVED | DrainState.PREPARING if drain.held_by:
            return f"{name} waits: {drain.held_by[0]}"
        case DrainState.PROPOSED | DrainState.APPROVED | DrainState.PREPARING:
            return f"{name} is about to begin."
        case DrainState.DRAINING if drain.held_by:
            return f"{name} stands still. {drain.held_by[0]}"
        case DrainState.DRAINING | DrainState.DRAINED if drain.intent is Intent.QUARANTINE:
            moved, planned = drain.progress.moved_pgs, drain.progress.planned_pgs
            return f"{name} is in force: {moved} of {planned} PGs have another primary."
        case DrainState.DRAINING | DrainState.DRAINED:
            where = "here" if filled else "away"
            lost = f"; {describe_lost(drain.progress.lost_pgs)}" if drain.progress.lost_pgs else ""
            return f"{name} runs: {drain.progress.moved_pgs} of {drain.progress.planned_pgs} PGs are {where}{lost}."
        case DrainState.HOLDING:
            return f"{name} holds: {drain.held_by[0] if drain.held_by else 'no reason is known.'}"
        case DrainState.PAUSED:
            return f"{name} was paused by a person."
        case DrainState.FAILED:
            return f"{name} failed: {drain.ended_why}"
        case DrainState.CANCELLING | DrainState.CANCELLED:
            return f"{name} is {describe_state(drain.state, drain.intent)}."
        case DrainState.VERIFIED | DrainState.HANDED_OVER:
            return f"{name} is done: the disk is {'filled' if filled else 'empty'}."


def _find_sick_disks(snapshot: AlertSnapshot) -> Iterator[SickDisk]:
    """Yield living disks of severity warning or bad. A disk without data has another cause, which says that it
    can be swapped.
    """
    fleet, osds, drains = snapshot.fleet, snapshot.fleet.osds_of(), snapshot.fleet.drain_of()
    for device, life in fleet.lives.items():
        reading, newest, severity = fleet.readings.get(device), fleet.outlooks.get(device), life.severity
        if (severity is not Status.WARNING and severity is not Status.BAD) or not life.holds_data:
            continue
        if reading is None or newest is None:
            continue
        mine, told = osds.get(device, ()), snapshot.told.get(device)
        turned = told if told is not None and told.severity is severity else newest
        drain = next((drains[osd] for osd in mine if osd in drains and drains[osd].device == device), None)
        seat = fleet.view.osds[mine[0]] if fleet.view and mine else None
        identity = reading.seen.identity if isinstance(reading.seen, Smart) else None
        model = (identity.model if identity else None) or (seat.model if seat else None) or "unknown model"
        yield SickDisk(
            device, severity, turned, reading.host, seat.rack if seat else None, model,
            identity.firmware if identity else None, mine, drain,
        )  # fmt: skip


def _split_groups(
    sick: Iterable[SickDisk], key: Callable[[SickDisk], object], together: Callable[[list[SickDisk]], bool]
) -> tuple[list[list[SickDisk]], list[SickDisk]]:
    """Return the groups of one key that belong `together`, and the disks of the other groups."""
    groups: dict[object, list[SickDisk]] = defaultdict(list)
    for one in sick:
        groups[key(one)].append(one)
    kept = [group for group in groups.values() if together(group)]
    return kept, [one for group in groups.values() if not together(group) for one in group]


def _of_model(
    group: list[SickDisk], snapshot: AlertSnapshot, key: str, alike: Counter[str | None]
) -> AlertCause:
    """Build the cause of sick disks of one model.

    alike: the number of disks of the model by firmware.
    """
    model, all_ = group[0].model, alike.total()
    hosts = len(_collect_hosts(group))
    title = f"{len(group)} of {all_} disks of model {model} on {hosts} hosts are {_describe_statuses(group)}"
    todo = "Look at what these disks have in common, and at the forecast, before the disks; more than "
    todo += f"{snapshot.policy.mass_suspicion_min} newly bad ones of a model are not drained by themselves."
    (firmware, sick), *_ = Counter(one.firmware for one in group).most_common(1)
    with_it = alike[firmware]
    others_sick, others = len(group) - sick, all_ - with_it
    if (
        firmware
        and sick >= MOSTLY * len(group)
        and _is_much_likelier_sick(sick, with_it, others_sick, others)
    ):
        title += f", {sick} of {with_it} with firmware {firmware}"
        todo = f"Look at firmware {firmware}: of {others} with another one {others_sick} are. {todo}"
    return _build_disks_cause(
        f"model:{key}", title, group, snapshot, todo=todo, path=f"/fleet?q={quote(model)}", model=model,
    )  # fmt: skip


def _is_much_likelier_sick(sick: int, of: int, others_sick: int, others: int) -> bool:
    """Return whether disks are clearly likelier sick with the firmware than without it.

    One more sick disk is assumed among the others, so that zero of a few disks proves nothing.
    """
    return others > 0 and sick * others > TIMES * (others_sick + 1) * of


def _count_firmware_by_model(snapshot: AlertSnapshot) -> dict[str | None, Counter[str | None]]:
    """Return, for each model, the number of disks by firmware, as the disks report it."""
    found: dict[str | None, Counter[str | None]] = defaultdict(Counter)
    for reading in snapshot.fleet.readings.values():
        if isinstance(reading.seen, Smart):
            found[reading.seen.identity.model][reading.seen.identity.firmware] += 1
    return found


def _of_rack(group: list[SickDisk], snapshot: AlertSnapshot) -> AlertCause:
    rack = group[0].rack
    return _build_disks_cause(
        f"rack:{rack}:{group[0].reason}",
        f"{len(group)} disks on {len(_collect_hosts(group))} hosts of rack {rack} are "
        f"{_describe_statuses(group)} for one reason",
        group,
        snapshot,
        todo="Look at what the rack's hosts share (cooling, power, switch) before the disks.",
        path="/fleet",
    )


def _of_host(group: list[SickDisk], snapshot: AlertSnapshot) -> AlertCause:
    host, todo = group[0].host, group[0].turned.prescription
    if len(group) == 1:
        title = f"{_format_osd_or_device(group[0])} on {host} is {_describe_statuses(group)}"
    else:
        title = f"{len(group)} disks on {host} are {_describe_statuses(group)}"
    return _build_disks_cause(
        f"host:{host}", title, group, snapshot, todo=todo, path=f"/fleet?q={quote(host)}", host=host
    )


def _build_disks_cause(
    key: str,
    title: str,
    group: list[SickDisk],
    snapshot: AlertSnapshot,
    *,
    todo: str,
    path: str,
    host: str | None = None,
    model: str | None = None,
) -> AlertCause:
    points = tuple(
        CausePart(
            f"disk:{one.device}",
            _describe_sick_disk(one, snapshot),
            _to_alert_severity(one),
            one.host,
            one.model,
        )
        for one in group
    )
    return AlertCause(f"disks:{key}", title, points, todo, path, host, model, AlertCauseKind.SICK_DISKS)


def _to_alert_severity(one: SickDisk) -> Severity:
    return Severity.URGENT if one.severity is Status.BAD else Severity.NOTICE


def _describe_sick_disk(one: SickDisk, snapshot: AlertSnapshot) -> str:
    now = snapshot.fleet.outlooks.get(one.device, one.turned)
    why = now.reasons[0].sentence if now.reasons else f"It is {one.severity}."
    week_ago = snapshot.fleet.week_ago.get(one.device)
    risen = (
        f", {format_bounded_probability(week_ago)} a week ago"
        if week_ago is not None and now.p_fail_30d is not None
        else ""
    )
    chance = describe_failure_chance(now).rstrip(".")
    said = f"{_format_osd_or_device(one)} ({one.host}, {one.model}): {why} {chance}{risen}."
    return f"{said} {describe_drain_activity(one.drain, snapshot.policy.mode)}".rstrip()


def _format_osd_or_device(one: SickDisk) -> str:
    if not one.osds:
        return one.device
    first = f"osd.{one.osds[0]}"
    return first if len(one.osds) == 1 else f"{first} and {len(one.osds) - 1} more OSDs on {one.device}"


def _describe_statuses(group: list[SickDisk]) -> str:
    found = Counter(one.severity for one in group)
    if len(found) == 1:
        return str(group[0].severity)
    return f"bad ({found[Status.BAD]}) or warning ({found[Status.WARNING]})"


def _collect_hosts(group: list[SickDisk]) -> set[HostName]:
    return {one.host for one in group}
