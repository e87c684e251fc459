"""Convert changes into events. The functions are pure; one change gives one event or none."""

from __future__ import annotations

from predrain.data.cluster_event import ClusterEvent, ClusterEventKind
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import LifeChange, LifeEvidence, LifeState, RetiredWhy
from predrain.data.outcome import DriveFate, Outcome
from predrain.service.events.event import CurrentPlaces, HistoryEvent, KnownChange
from predrain.service.events.event_kinds import HistoryKind as Kind

_OF_CLUSTER = {
    ClusterEventKind.OSD_DOWN: Kind.OSD_DOWN,
    ClusterEventKind.OSD_UP: Kind.OSD_UP,
    ClusterEventKind.HALTED: Kind.HALTED,
    ClusterEventKind.HALT_LIFTED: Kind.HALT_LIFTED,
    ClusterEventKind.CONTROLLER: Kind.CONTROLLER_CHANGED,
    ClusterEventKind.OUTLOOK_WORSE: Kind.OUTLOOK_WORSE,
    ClusterEventKind.OUTLOOK_DOUBLED: Kind.OUTLOOK_DOUBLED,
    ClusterEventKind.OUTLOOK_BETTER: Kind.OUTLOOK_BETTER,
}
_OF_LIFE = {
    LifeState.NEW: Kind.DISK_NEW,
    LifeState.IN_SERVICE: Kind.DISK_IN_SERVICE,
    LifeState.SILENT: Kind.DISK_SILENT,
    LifeState.FAILED: Kind.DISK_FAILED,
}
"""The states of a life that give events; drains and fills have events of their own."""
_OF_RETIRED = {
    RetiredWhy.REPLACED: Kind.DISK_REPLACED,
    RetiredWhy.REMOVED: Kind.DISK_REMOVED,
    RetiredWhy.MOVED: Kind.DISK_MOVED,
    RetiredWhy.LOST: Kind.DISK_LOST,
}
_OF_FATE = {
    DriveFate.FAILED: Kind.DISK_FAILED,
    DriveFate.REPLACED: Kind.DISK_REPLACED,
    DriveFate.REMOVED: Kind.DISK_REMOVED,
}


def make_event(known: KnownChange, places: CurrentPlaces) -> HistoryEvent | None:
    """Return the event of a change; None if another change gives the event already."""
    match known:
        case ClusterEvent():
            return _of_cluster(known, places)
        case LifeChange():
            return _of_life(known, places)
        case Outcome(fate=DriveFate.SUSPECTED):
            return None  # a rule suspects the disk after its OSD went down, which has an event
        case Outcome():
            kind = _OF_FATE.get(known.fate, Kind.DISK_STATEMENT)
            fate = "" if known.fate in _OF_FATE else known.fate.value
            why = ": ".join(part for part in (fate, known.note) if part)
            return HistoryEvent(
                known.at, kind, _find_event_host(None, known.device, None, places), known.device,
                places.osds.get(known.device), why=why, by="" if known.is_by_rule else known.source,
            )  # fmt: skip


def _of_cluster(event: ClusterEvent, places: CurrentPlaces) -> HistoryEvent:
    kind = _OF_CLUSTER.get(event.kind)
    if kind is None:
        assert event.state is not None, "an event of a drain says its state"
        kind = Kind(f"drain_{event.state.value}")
    osd = event.osds[0] if event.osds else None
    if event.kind.is_of_outlook and event.device is not None:
        osd = places.osds.get(event.device)
    device = event.device or (places.disks.get(osd) if osd is not None else None)
    drain = event.subject if event.kind is ClusterEventKind.DRAIN else None
    host = _find_event_host(event.host, device, osd, places)
    return HistoryEvent(
        event.at, kind, host, device, osd, drain, event.state, event.intent, event.severity, why=event.why, by=event.by
    )  # fmt: skip


def _of_life(change: LifeChange, places: CurrentPlaces) -> HistoryEvent | None:
    kind = _OF_RETIRED.get(change.why) if change.why is not None else _OF_LIFE.get(change.state)
    if kind is None or change.evidence is LifeEvidence.STATEMENT:
        return None
    osd = change.osds[0] if change.osds else places.osds.get(change.device)
    return HistoryEvent(
        change.at, kind, _find_event_host(change.host, change.device, osd, places), change.device, osd,
        successor=change.successor,
    )  # fmt: skip


def _find_event_host(
    told: HostName | None, device: DeviceId | None, osd: OsdId | None, places: CurrentPlaces
) -> HostName | None:
    if told is not None:
        return told
    home = places.homes.get(device) if device is not None else None
    return home or (places.hosts.get(osd) if osd is not None else None)
