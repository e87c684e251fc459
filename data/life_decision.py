"""The rule of the life cycle: from what is known of a disk to its state. Pure functions of values.

`decide_life` makes the state of one disk of everything that is known of the disk. Where the state, the place or the
successor differs from the last change that is on record, the answer is a new change with its time, its source and its
evidence; else it is that last change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import DiskLife, LifeChange, LifeEvidence, LifeSource, LifeState, RetiredWhy
from predrain.data.outcome import Fate, Outcome
from predrain.data.outlook import Outlook, Status
from predrain.data.reading import Reading, Role, Unreadable
from predrain.data.residence import is_apart

UNHEARD = timedelta(days=7)
"""A disk under no running OSD that was not read for so long (or for four stale times) is lost from sight."""
SETTLING = timedelta(minutes=10)
"""After a start, or after a host was heard again: by then what waited in spools and in the log has been delivered."""


@dataclass(frozen=True, slots=True)
class OsdPlace:
    """An OSD as the cluster has it, or, where no cluster is known, as its host told it with a reading."""

    osd: OsdId
    host: HostName
    device: DeviceId | None
    """The disk that keeps its data: it stands in the slot. None: not known now."""
    up: bool = False
    serving: bool = False
    """Whether the OSD is up, in and has weight, so that data is on it."""
    shared: tuple[DeviceId, ...] = ()
    """Disks that keep its DB or WAL."""


@dataclass(frozen=True, slots=True)
class LifeClock:
    """The time of a decision, and the named times of the rule."""

    now: datetime
    stale_after: timedelta
    """A disk without an answer for so long is silent."""
    settled: bool = True
    """Whether readings had time to arrive, so that missing ones mean something."""

    @property
    def lost_after(self) -> timedelta:
        """A disk that nobody has read for so long is lost from sight."""
        return max(UNHEARD, 4 * self.stale_after)


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """Where the disks stand: `places` by OSD. `as_of`: of the cluster's own list; None: told by readings alone."""

    places: Mapping[OsdId, OsdPlace] = field(default_factory=dict)
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """Everything that is known of one disk."""

    device: DeviceId
    reading: Reading | None = None
    """Its newest one."""
    outlook: Outlook | None = None
    places: tuple[OsdPlace, ...] = ()
    """OSDs that keep data, DB or WAL on it, in the order of their ids."""
    drain: Drain | None = None
    """The newest drain or fill of the disk that began and was not taken back (`concerning_drains`)."""
    drained_osds: tuple[OsdId, ...] = ()
    """OSDs of the newest drain of the disk, however that drain ended."""
    statement: Outcome | None = None
    """The last statement about the end of the disk, or that it is well (`settling_statements`)."""
    awake_since: datetime | None = None
    """Since when its host is heard without a pause; None: its host is silent."""
    before: LifeChange | None = None
    """The last change on record."""


_ENDS = {
    Fate.FAILED: (LifeState.FAILED, None),
    Fate.REMOVED: (LifeState.RETIRED, RetiredWhy.REMOVED),
    Fate.REPLACED: (LifeState.RETIRED, RetiredWhy.REPLACED),
}
_NOT_BEGUN = frozenset({DrainState.PROPOSED, DrainState.CANCELLED, DrainState.FAILED})
_DONE = frozenset({DrainState.DRAINED, DrainState.VERIFIED, DrainState.HANDED_OVER})


def concerning_drains(drains: Sequence[Drain]) -> Mapping[DeviceId, Drain]:
    """The drain or fill that concerns each disk, of drains in the order newest first."""
    found: dict[DeviceId, Drain] = {}
    for drain in drains:
        if drain.device is None or drain.intent is Intent.QUARANTINE or drain.state in _NOT_BEGUN:
            continue
        found.setdefault(drain.device, drain)
    return found


def osds_of_drains(drains: Sequence[Drain]) -> Mapping[DeviceId, tuple[OsdId, ...]]:
    """The OSDs of the newest drain of each disk, of drains in the order newest first."""
    found: dict[DeviceId, tuple[OsdId, ...]] = {}
    for drain in drains:
        if drain.device is not None:
            found.setdefault(drain.device, drain.osds)
    return found


def settling_statements(outcomes: Iterable[Outcome]) -> Mapping[DeviceId, Outcome]:
    """The last statement of a person about the end of each disk, of statements in order of time. What a rule states
    follows from the life of the disk and settles nothing."""
    return {one.device: one for one in outcomes if one.fate is not Fate.UNVERIFIED and not one.is_by_rule}


def places_of_disks(cluster: KnownCluster) -> Mapping[DeviceId, tuple[OsdPlace, ...]]:
    """OSDs that keep data, DB or WAL on each disk."""
    found: dict[DeviceId, tuple[OsdPlace, ...]] = {}
    for _, place in sorted(cluster.places.items()):
        for device in dict.fromkeys((place.device, *place.shared)):
            if device is not None:
                found[device] = (*found.get(device, ()), place)
    return found


def places_told_by_readings(readings: Mapping[DeviceId, Reading]) -> KnownCluster:
    """Where the disks stand as their hosts told it: of two disks that name one OSD the one that was read last."""
    found: dict[OsdId, tuple[datetime, OsdPlace]] = {}
    for device, reading in readings.items():
        for seat in reading.seats:
            held = found.get(seat.osd)
            if seat.role is Role.DATA and (held is None or held[0] < reading.taken_at):
                found[seat.osd] = reading.taken_at, OsdPlace(seat.osd, reading.host, device)
    return KnownCluster({osd: place for osd, (_, place) in found.items()})


def decide_life(facts: DiskFacts, cluster: KnownCluster, clock: LifeClock) -> DiskLife:
    """How a disk stands, by what is known of it. What it says is `facts.before` where nothing changed."""
    change = _decide_change(facts, cluster, clock)
    before = facts.before
    if before is not None:
        if change.standing == before.standing:
            change = before
        elif change.at < before.at:
            change = replace(change, at=before.at)
    if not change.state.is_living:
        return DiskLife(change, None)
    return DiskLife(change, facts.outlook.severity if facts.outlook is not None else Status.UNKNOWN)


def _decide_change(facts: DiskFacts, cluster: KnownCluster, clock: LifeClock) -> LifeChange:
    """The first of these that says something: another disk in the slot, a person, the cluster, a drain, readings."""
    before = facts.before
    own = tuple(place.osd for place in facts.places if place.device == facts.device)
    told_here = bool(facts.places) or facts.reading is not None
    if not told_here:
        return _after_all_facts_went(facts, clock)
    slots = own or _last_slots(facts)
    host = facts.reading.host if facts.reading is not None else facts.places[0].host
    successor = _successor(facts, slots, cluster) if not own else None
    made = LifeChange(
        facts.device, clock.now, LifeState.IN_SERVICE, LifeSource.COLLECTOR, LifeEvidence.READING,
        host, host=host, osds=slots, successor=successor,
    )  # fmt: skip
    if before is not None and _is_kept_without_a_cluster(before, cluster, facts):
        return before
    if successor is not None and not facts.places:
        return _replaced(facts, made, cluster)
    if (ended := _ended_by_statement(facts, made)) is not None:
        return ended
    if slots and not facts.places and cluster.as_of is not None and not _in(cluster, slots):
        return replace(
            made, at=cluster.as_of, state=LifeState.RETIRED, why=RetiredWhy.REMOVED, source=LifeSource.CLUSTER,
            evidence=LifeEvidence.OSD_GONE, subject=f"osd.{slots[0]}",
        )  # fmt: skip
    if (drained := _by_drain(facts, made, clock)) is not None:
        return drained
    return _by_readings(facts, made, clock)


def _after_all_facts_went(facts: DiskFacts, clock: LifeClock) -> LifeChange:
    """A disk that is on record, and of which neither a reading nor the cluster's list is left."""
    before = facts.before
    assert before is not None, "a disk of which nothing is known has no life"
    if not before.state.is_living:
        return before
    if is_apart(facts.device):
        return replace(
            before, at=clock.now, state=LifeState.RETIRED, why=RetiredWhy.MOVED, source=LifeSource.COLLECTOR,
            evidence=LifeEvidence.HISTORY_MOVED, subject=before.host or "",
        )  # fmt: skip
    return replace(
        before, at=clock.now, state=LifeState.RETIRED, why=RetiredWhy.REMOVED, source=LifeSource.CLUSTER,
        evidence=LifeEvidence.OSD_GONE, subject=f"osd.{before.osds[0]}" if before.osds else "",
    )  # fmt: skip


def _last_slots(facts: DiskFacts) -> tuple[OsdId, ...]:
    """Where a disk stood on which no OSD keeps data now: on record, by its last reading, or by its last drain."""
    if facts.before is not None and facts.before.osds:
        return facts.before.osds
    if facts.reading is not None and facts.reading.seats:
        return tuple(seat.osd for seat in facts.reading.seats if seat.role is Role.DATA)
    return facts.drained_osds


def _is_kept_without_a_cluster(before: LifeChange, cluster: KnownCluster, facts: DiskFacts) -> bool:
    """What the cluster had settled stands until the cluster is seen again, as after a restart."""
    settled = not before.state.is_living and before.source is LifeSource.CLUSTER
    return settled and cluster.as_of is None and not facts.places


def _successor(facts: DiskFacts, slots: tuple[OsdId, ...], cluster: KnownCluster) -> DeviceId | None:
    """The disk that stands in a slot of this disk now; once it is on record it stays."""
    if facts.before is not None and facts.before.successor is not None and not facts.places:
        return facts.before.successor
    held = (cluster.places[slot].device for slot in slots if slot in cluster.places)
    return next((device for device in held if device not in (None, facts.device)), None)


def _replaced(facts: DiskFacts, made: LifeChange, cluster: KnownCluster) -> LifeChange:
    """Another disk stands in the slot, and no OSD is on this one."""
    why = RetiredWhy.REPLACED
    if facts.before is not None and facts.before.why is RetiredWhy.REMOVED:
        why = RetiredWhy.REMOVED
    by_cluster = cluster.as_of is not None
    return replace(
        made,
        at=cluster.as_of or made.at,
        state=LifeState.RETIRED,
        why=why,
        source=LifeSource.CLUSTER if by_cluster else LifeSource.COLLECTOR,
        evidence=LifeEvidence.OTHER_DISK,
        subject=made.successor or "",
    )


def _ended_by_statement(facts: DiskFacts, made: LifeChange) -> LifeChange | None:
    """What a person said of the disk's end, unless the disk has answered since."""
    said, reading = facts.statement, facts.reading
    if said is None or said.fate not in _ENDS:
        return None
    if reading is not None and not isinstance(reading.seen, Unreadable) and reading.taken_at > said.at:
        return None
    state, why = _ENDS[said.fate]
    return replace(
        made, at=said.at, state=state, why=why, source=LifeSource.PERSON, evidence=LifeEvidence.STATEMENT,
        subject=said.source,
    )  # fmt: skip


def _by_drain(facts: DiskFacts, made: LifeChange, clock: LifeClock) -> LifeChange | None:
    """A drain or fill that runs, or a drain after which the disk is empty."""
    drain = facts.drain
    if drain is None:
        return None
    found = replace(
        made, at=drain.updated_at, source=LifeSource.CLUSTER, evidence=LifeEvidence.DRAIN, subject=drain.id
    )
    if drain.intent is Intent.FILL:
        return None if drain.state in _DONE else replace(found, state=LifeState.FILLING)
    if drain.state not in _DONE:
        return replace(found, state=LifeState.DRAINING)
    if drain.state is DrainState.HANDED_OVER:
        serving = next((place for place in facts.places if place.serving), None)
        if serving is not None:
            return replace(
                found, at=clock.now, state=LifeState.IN_SERVICE, evidence=LifeEvidence.OSD_SERVES,
                subject=f"osd.{serving.osd}",
            )  # fmt: skip
        if _is_missing(facts, clock):
            return replace(
                made, at=_last_answer(facts, clock), state=LifeState.RETIRED, why=RetiredWhy.REMOVED,
                evidence=LifeEvidence.NOT_LISTED, subject=made.host or "",
            )  # fmt: skip
    return replace(found, state=LifeState.DRAINED)


def _by_readings(facts: DiskFacts, made: LifeChange, clock: LifeClock) -> LifeChange:
    """What readings, and missing ones, say of a disk that nothing else is known of."""
    reading, before = facts.reading, facts.before
    unjudged = facts.outlook is None or facts.outlook.severity is Status.UNKNOWN
    is_new = unjudged and (before is None or before.state is LifeState.NEW)
    if reading is None:
        return replace(
            made, state=LifeState.NEW if is_new else LifeState.SILENT, source=LifeSource.CLUSTER,
            evidence=LifeEvidence.NAMED_BY_CLUSTER, subject=f"osd.{facts.places[0].osd}",
        )  # fmt: skip
    if _is_missing(facts, clock):
        listed = facts.awake_since is None
        return replace(
            made, at=_last_answer(facts, clock), state=LifeState.RETIRED, why=RetiredWhy.LOST,
            evidence=LifeEvidence.NO_READING if listed else LifeEvidence.NOT_LISTED, subject=reading.host,
        )  # fmt: skip
    is_late = clock.now - reading.taken_at > clock.stale_after
    if is_late and not clock.settled and (before is None or before.state is not LifeState.SILENT):
        # What the disk said meanwhile may still wait in a spool or in the log.
        return replace(made, at=reading.taken_at, state=LifeState.NEW if is_new else LifeState.IN_SERVICE)
    if is_late:
        return replace(
            made, at=reading.taken_at + clock.stale_after, state=LifeState.SILENT,
            evidence=LifeEvidence.NO_READING, subject=reading.host,
        )  # fmt: skip
    if isinstance(reading.seen, Unreadable) and clock.now - reading.seen.since > clock.stale_after:
        return replace(
            made, at=reading.seen.since + clock.stale_after, state=LifeState.SILENT,
            evidence=LifeEvidence.UNREADABLE, subject=reading.seen.cause.value,
        )  # fmt: skip
    if is_new:
        evidence = LifeEvidence.FIRST_READING
        return replace(made, at=reading.taken_at, state=LifeState.NEW, evidence=evidence)
    return replace(made, at=reading.taken_at)


def _is_missing(facts: DiskFacts, clock: LifeClock) -> bool:
    """Whether nobody sees the disk: no OSD runs on it, and its host reads it no more or is silent for long."""
    reading = facts.reading
    if reading is None or any(place.up for place in facts.places):
        return False
    age = clock.now - reading.taken_at
    if age > clock.lost_after and (clock.settled or facts.before is None):
        return True
    awake = facts.awake_since is not None and clock.now - facts.awake_since >= SETTLING
    return clock.settled and awake and age > clock.stale_after


def _last_answer(facts: DiskFacts, clock: LifeClock) -> datetime:
    """When the disk counts as missing: the moment at which its next answer was overdue."""
    assert facts.reading is not None
    late = clock.stale_after if facts.awake_since is not None else clock.lost_after
    return min(clock.now, facts.reading.taken_at + late)


def _in(cluster: KnownCluster, slots: tuple[OsdId, ...]) -> bool:
    """Whether the cluster has any of the OSDs."""
    return any(slot in cluster.places for slot in slots)
