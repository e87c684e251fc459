"""From what the service knows to events: pure, one change gives one event or none."""

from __future__ import annotations

from predrain.data.cluster_event import ClusterEvent, ClusterEventKind
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import LifeChange, LifeEvidence, LifeState, RetiredWhy
from predrain.data.outcome import Fate, Outcome
from predrain.service.history.event import CurrentPlaces, HistoryEvent, KnownChange
from predrain.service.history.kinds import HistoryKind as Kind

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
"""Drains and fills tell of themselves."""
_OF_RETIRED = {
    RetiredWhy.REPLACED: Kind.DISK_REPLACED,
    RetiredWhy.REMOVED: Kind.DISK_REMOVED,
    RetiredWhy.MOVED: Kind.DISK_MOVED,
    RetiredWhy.LOST: Kind.DISK_LOST,
}
_OF_FATE = {Fate.FAILED: Kind.DISK_FAILED, Fate.REPLACED: Kind.DISK_REPLACED, Fate.REMOVED: Kind.DISK_REMOVED}


def make_event(known: KnownChange, places: CurrentPlaces) -> HistoryEvent | None:
    """The event that a change is; None for one that another change tells already."""
    match known:
        case ClusterEvent():
            return _of_cluster(known, places)
        case LifeChange():
            return _of_life(known, places)
        case Outcome(fate=Fate.SUSPECTED):
            return None  # by a rule, after an OSD that went down
        case Outcome():
            kind = _OF_FATE.get(known.fate, Kind.DISK_STATEMENT)
            fate = "" if known.fate in _OF_FATE else known.fate.value
            why = ": ".join(part for part in (fate, known.note) if part)
            return HistoryEvent(
                known.at, kind, _host(None, known.device, None, places), known.device,
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
    return HistoryEvent(
        event.at, kind, _host(event.host, device, osd, places), device, osd, drain, event.state, event.intent,
        event.severity, why=event.why, by=event.by,
    )  # fmt: skip


def _of_life(change: LifeChange, places: CurrentPlaces) -> HistoryEvent | None:
    kind = _OF_RETIRED.get(change.why) if change.why is not None else _OF_LIFE.get(change.state)
    if kind is None or change.evidence is LifeEvidence.STATEMENT:
        return None
    osd = change.osds[0] if change.osds else places.osds.get(change.device)
    return HistoryEvent(
        change.at, kind, _host(change.host, change.device, osd, places), change.device, osd,
        successor=change.successor,
    )  # fmt: skip


def _host(
    told: HostName | None, device: DeviceId | None, osd: OsdId | None, places: CurrentPlaces
) -> HostName | None:
    if told is not None:
        return told
    home = places.homes.get(device) if device is not None else None
    return home or (places.hosts.get(osd) if osd is not None else None)
