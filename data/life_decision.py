"""The rule of the life cycle: derives the state of a disk from all facts about it. Pure functions of values.

`decide_life` decides on the state of one disk. If the state, the place or the successor differs from the last stored
change, the answer is a new change with its time, its source and its evidence; else it is that last change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import ClusterId, DeviceId, HostName, OsdId
from predrain.data.life_cycle import DiskLife, LifeChange, LifeEvidence, LifeSource, LifeState, RetiredWhy
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.outlook import Outlook, Status
from predrain.data.reading import Reading, Role, Unreadable
from predrain.data.residence import is_apart

UNHEARD = timedelta(days=7)
"""A disk under no running OSD that was not read for so long (or for four stale times) is lost."""
SETTLING = timedelta(minutes=10)
"""Time after a start, or after a host was heard again, by which records waiting in spools and in the log have
arrived."""


@dataclass(frozen=True, slots=True)
class OsdPlace:
    """An OSD as the cluster has it or, without a known cluster, as its host reported it with a reading."""

    osd: OsdId
    host: HostName
    device: DeviceId | None
    """The disk that holds the OSD's data: it stands in the slot. None: not known now."""
    up: bool = False
    serving: bool = False
    """True if the OSD is up, in and has weight, so that data is on it."""
    shared: tuple[DeviceId, ...] = ()
    """Disks that hold the OSD's DB or WAL."""


@dataclass(frozen=True, slots=True)
class LifeClock:
    """The time of a decision, and the named times of the rule."""

    now: datetime
    stale_after: timedelta
    """A disk without an answer for so long is silent."""
    settled: bool = True
    """True if readings had time to arrive, so that missing ones have a meaning."""

    @property
    def lost_after(self) -> timedelta:
        """A disk that no host has read for so long is lost."""
        return max(UNHEARD, 4 * self.stale_after)


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """The places of the disks, by OSD.

    `as_of` is the time of the cluster's own list; None: known from readings alone.
    """

    places: Mapping[OsdId, OsdPlace] = field(default_factory=dict)
    as_of: datetime | None = None
    fsid: ClusterId | None = None
    """None while the cluster is not known."""


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """All facts about one disk."""

    device: DeviceId
    reading: Reading | None = None
    """The newest reading of the disk."""
    outlook: Outlook | None = None
    places: tuple[OsdPlace, ...] = ()
    """OSDs that keep data, DB or WAL on the disk, in the order of their ids."""
    drain: Drain | None = None
    """The newest drain or fill of the disk that began and was not taken back (`concerning_drains`)."""
    drained_osds: tuple[OsdId, ...] = ()
    """OSDs of the newest drain of the disk, in any end state."""
    statement: Outcome | None = None
    """The last statement about the end of the disk, or that it is well (`settling_statements`)."""
    awake_since: datetime | None = None
    """Time since which the disk's host is heard without a pause; None: its host is silent."""
    before: LifeChange | None = None
    """The last stored change."""


_ENDS = {
    DriveFate.FAILED: (LifeState.FAILED, None),
    DriveFate.REMOVED: (LifeState.RETIRED, RetiredWhy.REMOVED),
    DriveFate.REPLACED: (LifeState.RETIRED, RetiredWhy.REPLACED),
}
_NOT_BEGUN = frozenset({DrainState.PROPOSED, DrainState.CANCELLED, DrainState.FAILED})
_DONE = frozenset({DrainState.DRAINED, DrainState.VERIFIED, DrainState.HANDED_OVER})


def concerning_drains(drains: Sequence[Drain]) -> Mapping[DeviceId, Drain]:
    """Return the drain or fill that concerns each disk. `drains` are in the order newest first."""
    found: dict[DeviceId, Drain] = {}
    for drain in drains:
        if drain.device is None or drain.intent is Intent.QUARANTINE or drain.state in _NOT_BEGUN:
            continue
        found.setdefault(drain.device, drain)
    return found


def osds_of_drains(drains: Sequence[Drain]) -> Mapping[DeviceId, tuple[OsdId, ...]]:
    """Return the OSDs of the newest drain of each disk. `drains` are in the order newest first."""
    found: dict[DeviceId, tuple[OsdId, ...]] = {}
    for drain in drains:
        if drain.device is not None:
            found.setdefault(drain.device, drain.osds)
    return found


def settling_statements(outcomes: Iterable[Outcome]) -> Mapping[DeviceId, Outcome]:
    """Return the last statement of a person about the end of each disk. `outcomes` are in the order of time.

    A rule's statement follows from the life of the disk and decides nothing.
    """
    return {
        one.device: one for one in outcomes if one.fate is not DriveFate.UNVERIFIED and not one.is_by_rule
    }


def places_of_disks(cluster: KnownCluster) -> Mapping[DeviceId, tuple[OsdPlace, ...]]:
    """Return the OSDs that keep data, DB or WAL on each disk."""
    found: dict[DeviceId, tuple[OsdPlace, ...]] = {}
    for _, place in sorted(cluster.places.items()):
        for device in dict.fromkeys((place.device, *place.shared)):
            if device is not None:
                found[device] = (*found.get(device, ()), place)
    return found


def places_told_by_readings(readings: Mapping[DeviceId, Reading], own: ClusterId | None) -> KnownCluster:
    """Return the places of the disks of the cluster `own` as their hosts reported them.

    Of two disks that name one OSD the last read counts. An OSD whose host does not report its cluster counts as one of
    the own cluster. If the own cluster is unknown, an OSD's number that several clusters have gives no place.
    """
    found: dict[OsdId, tuple[datetime, OsdPlace]] = {}
    clusters: defaultdict[OsdId, set[ClusterId]] = defaultdict(set)
    for device, reading in readings.items():
        for osd_device in reading.osd_devices:
            if osd_device.cluster is not None:
                if own is not None and osd_device.cluster != own:
                    continue
                clusters[osd_device.osd].add(osd_device.cluster)
            held = found.get(osd_device.osd)
            if osd_device.role is Role.DATA and (held is None or held[0] < reading.taken_at):
                found[osd_device.osd] = reading.taken_at, OsdPlace(osd_device.osd, reading.host, device)
    places = {osd: place for osd, (_, place) in found.items() if len(clusters[osd]) < 2}
    return KnownCluster(places, fsid=own)


def decide_life(facts: DiskFacts, cluster: KnownCluster, clock: LifeClock) -> DiskLife:
    """Decide on the life of a disk from the facts about it. The change is `facts.before` if nothing changed."""
    change = _decide_change(facts, cluster, clock)
    before = facts.before
    if before is not None:
        if change.state_key == before.state_key:
            change = before
        elif change.at < before.at:
            change = replace(change, at=before.at)
    if not change.state.is_living:
        return DiskLife(change, None)
    return DiskLife(change, facts.outlook.severity if facts.outlook is not None else Status.UNKNOWN)


def _decide_change(facts: DiskFacts, cluster: KnownCluster, clock: LifeClock) -> LifeChange:
    """Return the change by the first source that has one: another disk in the slot, a person, the cluster, a drain,
    readings.
    """
    before = facts.before
    own = tuple(place.osd for place in facts.places if place.device == facts.device)
    told_here = bool(facts.places) or facts.reading is not None
    if not told_here:
        return _after_all_facts_went(facts, clock)
    slots = own or _last_slots(facts, cluster)
    host = facts.reading.host if facts.reading is not None else facts.places[0].host
    successor = _find_successor(facts, slots, cluster) if not own else None
    made = LifeChange(
        facts.device, clock.now, LifeState.IN_SERVICE, LifeSource.COLLECTOR, LifeEvidence.READING,
        host, host=host, osds=slots, successor=successor,
    )  # fmt: skip
    if before is not None and _is_kept_without_a_cluster(before, cluster, facts):
        return before
    if successor is not None and not facts.places:
        return _build_replaced_change(facts, made, cluster)
    if (ended := _ended_by_statement(facts, made)) is not None:
        return ended
    if slots and not facts.places and cluster.as_of is not None and not _has_any_osd(cluster, slots):
        return replace(
            made, at=cluster.as_of, state=LifeState.RETIRED, why=RetiredWhy.REMOVED, source=LifeSource.CLUSTER,
            evidence=LifeEvidence.OSD_GONE, subject=f"osd.{slots[0]}",
        )  # fmt: skip
    if (drained := _by_drain(facts, made, clock)) is not None:
        return drained
    return _by_readings(facts, made, clock)


def _after_all_facts_went(facts: DiskFacts, clock: LifeClock) -> LifeChange:
    """Return the change of a stored disk without a reading and without an entry in the cluster's list."""
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


def _last_slots(facts: DiskFacts, cluster: KnownCluster) -> tuple[OsdId, ...]:
    """Return the slots of a disk without an OSD's data now: the stored ones, or by its last reading or
    its last drain. An OSD of another cluster has no slot in this one.
    """
    if facts.before is not None and facts.before.osds:
        return facts.before.osds
    if facts.reading is not None and facts.reading.osd_devices:
        return tuple(
            osd_device.osd
            for osd_device in facts.reading.osd_devices
            if osd_device.role is Role.DATA
            and (cluster.fsid is None or osd_device.cluster in (None, cluster.fsid))
        )
    return facts.drained_osds


def _is_kept_without_a_cluster(before: LifeChange, cluster: KnownCluster, facts: DiskFacts) -> bool:
    """Return whether an end that the cluster decided stands until the cluster is seen again, as after a restart."""
    settled = not before.state.is_living and before.source is LifeSource.CLUSTER
    return settled and cluster.as_of is None and not facts.places


def _find_successor(facts: DiskFacts, slots: tuple[OsdId, ...], cluster: KnownCluster) -> DeviceId | None:
    """Return the disk that stands in a slot of this disk now; once stored, it stays."""
    if facts.before is not None and facts.before.successor is not None and not facts.places:
        return facts.before.successor
    held = (cluster.places[slot].device for slot in slots if slot in cluster.places)
    return next((device for device in held if device not in (None, facts.device)), None)


def _build_replaced_change(facts: DiskFacts, made: LifeChange, cluster: KnownCluster) -> LifeChange:
    """Build the change of a disk without an OSD whose slot has another disk."""
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
    """Return the end that a person stated, or None if there is none or the disk has answered since."""
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
    """Return the change by a drain or fill that runs, or by a drain that left the disk empty; else None."""
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
    """Return the change by readings, and by missing ones, for a disk without other facts."""
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
        # The disk's answers since then may still wait in a spool or in the log.
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
    """Return whether the disk is missing: no OSD runs on it, and its host no longer reads it or is silent for long."""
    reading = facts.reading
    if reading is None or any(place.up for place in facts.places):
        return False
    age = clock.now - reading.taken_at
    before = facts.before
    if before is not None and before.why is RetiredWhy.LOST and before.at > reading.taken_at:
        return True  # its host listed its disks without it, and may be silent itself by now
    if age > clock.lost_after and (clock.settled or facts.before is None):
        return True
    awake = facts.awake_since is not None and clock.now - facts.awake_since >= SETTLING
    return clock.settled and awake and age > clock.stale_after


def _last_answer(facts: DiskFacts, clock: LifeClock) -> datetime:
    """Return the time from which the disk counts as missing: the moment at which its next answer was overdue."""
    assert facts.reading is not None
    late = clock.stale_after if facts.awake_since is not None else clock.lost_after
    return min(clock.now, facts.reading.taken_at + late)


def _has_any_osd(cluster: KnownCluster, slots: tuple[OsdId, ...]) -> bool:
    """Return whether the cluster has any of the OSDs."""
    return any(slot in cluster.places for slot in slots)
