"""Decides which disks failed from the cluster's reaction to them, without a person's statement.

A disk counts as failed when all of this holds:

1. Its OSD went down while it was in and had weight (the statement `OutcomeRule.OSD_DOWN`).
2. No OSD ran on the disk again.
3. The disk is gone: another disk stands in its slot, or the cluster no longer has its OSD. Or the OSD is down for
   DOWN_FOR_GOOD, and the host, which is awake, no longer lists the disk or gets no answer from it.
4. No OSD of another disk went down on the same host within TOGETHER of it: a host, a controller or a shared device
   that fails takes several OSDs along, and their disks are well.
5. No drain had emptied the disk by then: an empty disk is stopped and swapped on purpose.
6. No person has said since then whether the disk failed.

The known error of this rule is a healthy disk that a person replaces without a drain and without taking its OSD out
first: the statement `cleared` corrects it. A death while no controller polled is missed if the cluster had taken the
OSD out by then. If an OSD runs on such a disk again, the rule withdraws its statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from predrain.data.cluster_event import ClusterEvent, ClusterEventKind
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import DeviceId, OsdId
from predrain.data.life_cycle import DiskLife, LifeEvidence, LifeState
from predrain.data.outcome import DriveFate, Outcome, OutcomeRule

TOGETHER = timedelta(minutes=10)
DOWN_FOR_GOOD = timedelta(days=7)

GONE_TEXTS = {
    LifeEvidence.OTHER_DISK: "another disk stands in its slot",
    LifeEvidence.OSD_GONE: "the cluster has this OSD no more",
}
ABSENT_TEXTS = {
    LifeEvidence.NOT_LISTED: "its host lists the disk no more",
    LifeEvidence.UNREADABLE: "the disk does not answer its host",
}
"""Evidence that may pass, as when a disk is pulled and put back: it counts after DOWN_FOR_GOOD."""
_EMPTY = frozenset({DrainState.DRAINED, DrainState.VERIFIED, DrainState.HANDED_OVER})
_VERDICTS = frozenset({DriveFate.FAILED, DriveFate.CONFIRMED, DriveFate.CLEARED})

ReadEvents = Callable[[datetime], Sequence[ClusterEvent]]
"""Gives the events of the cluster from a time on."""


def find_failed_disks(
    outcomes: Iterable[Outcome],
    lives: Mapping[DeviceId, DiskLife],
    drains: Sequence[Drain],
    read_events: ReadEvents,
    now: datetime,
) -> tuple[Outcome, ...]:
    """Return the statements that are still to be made: OSD_LOST, at the time when the OSD went down, and OSD_BACK.

    `outcomes` holds all statements in order of time. `read_events` is called once, and only if a suspected disk is
    gone or a disk that was declared lost is in service.
    """
    suspicions, lost = _find_open(outcomes)
    gone = [
        (one, life, why)
        for one in suspicions.values()
        if (life := lives.get(one.device)) is not None and (why := _describe_end(life, one, now)) is not None
    ]
    serving = [one for one in lost.values() if (life := lives.get(one.device)) is not None and life.is_living]
    if not gone and not serving:
        return ()
    own = {one.device: [drain for drain in drains if _may_empty(drain, one.device)] for one, _, _ in gone}
    earliest = [one.at - TOGETHER for one, _, _ in gone] + [one.at for one in serving]
    events = read_events(min([*earliest, *(drain.created_at for some in own.values() for drain in some)]))
    found = []
    for suspicion, life, why in gone:
        emptying = {drain.id for drain in own[suspicion.device]}
        if not (_find_return(events, suspicion) or _was_on_purpose(events, suspicion, life, emptying)):
            note = f"{suspicion.note}, no OSD ran on the disk again, and {why}"
            found.append(
                Outcome(suspicion.device, suspicion.at, DriveFate.FAILED, OutcomeRule.OSD_LOST, note)
            )
    for verdict in serving:
        if (up := _find_return(events, verdict)) is not None:
            note = f"{up.subject} runs on the disk again"
            found.append(Outcome(verdict.device, up.at, DriveFate.CLEARED, OutcomeRule.OSD_BACK, note))
    return tuple(found)


def _may_empty(drain: Drain, device: DeviceId) -> bool:
    return drain.device == device and drain.intent is not Intent.FILL


def _find_open(
    outcomes: Iterable[Outcome],
) -> tuple[Mapping[DeviceId, Outcome], Mapping[DeviceId, Outcome]]:
    """Return the last open suspicion of each disk, and the last OSD_LOST of each disk.

    A suspicion is open if no statement since then says whether the disk failed. An OSD_LOST is returned only if it is
    the last verdict.
    """
    suspicions, lost = dict[DeviceId, Outcome](), dict[DeviceId, Outcome]()
    for one in outcomes:
        if one.source == OutcomeRule.OSD_DOWN:
            suspicions[one.device] = one
        elif one.fate in _VERDICTS:
            suspicions.pop(one.device, None)
            lost.pop(one.device, None)
            if one.source == OutcomeRule.OSD_LOST:
                lost[one.device] = one
    return suspicions, lost


def _find_return(events: Iterable[ClusterEvent], since: Outcome) -> ClusterEvent | None:
    """Return the event of an OSD that came up on the disk after a statement about the disk, or None."""
    ups = (one for one in events if one.kind is ClusterEventKind.OSD_UP)
    return next((one for one in ups if one.device == since.device and one.at > since.at), None)


def _describe_end(life: DiskLife, suspicion: Outcome, now: datetime) -> str | None:
    """Return the reason why the disk counts as gone, or None if it does not."""
    change = life.change
    if change.state is LifeState.RETIRED and change.evidence in GONE_TEXTS:
        return GONE_TEXTS[change.evidence]
    if change.evidence in ABSENT_TEXTS and now - suspicion.at >= DOWN_FOR_GOOD:
        return ABSENT_TEXTS[change.evidence]
    return None


def _was_on_purpose(
    events: Sequence[ClusterEvent], suspicion: Outcome, life: DiskLife, drains: set[str]
) -> bool:
    """Return whether the disk was empty before its OSD went down, or other disks of its host went down with it."""
    downs = [one for one in events if one.kind is ClusterEventKind.OSD_DOWN]
    down = next((one for one in downs if one.device == suspicion.device), None)
    host = down.host if down is not None else life.change.host
    own: tuple[OsdId, ...] = down.osds if down is not None else life.change.osds
    emptied = any(one.subject in drains and one.state in _EMPTY and one.at < suspicion.at for one in events)
    return emptied or any(
        one.host == host
        and one.device != suspicion.device
        and not set(one.osds) & set(own)
        and abs(one.at - suspicion.at) <= TOGETHER
        for one in downs
    )
