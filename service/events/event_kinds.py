"""The closed lists of events that can happen."""

from __future__ import annotations

from enum import StrEnum


class HistoryGroup(StrEnum):
    """The subject of an event."""

    OSD = "osd"
    DISK = "disk"
    OUTLOOK = "outlook"
    DRAIN = "drain"
    HALT = "halt"
    CONTROLLER = "controller"


class HistoryKind(StrEnum):
    """The kinds of events."""

    OSD_DOWN = "osd_down"
    OSD_UP = "osd_up"
    DISK_NEW = "disk_new"
    DISK_IN_SERVICE = "disk_in_service"
    DISK_SILENT = "disk_silent"
    DISK_FAILED = "disk_failed"
    DISK_REPLACED = "disk_replaced"
    DISK_REMOVED = "disk_removed"
    DISK_MOVED = "disk_moved"
    DISK_LOST = "disk_lost"
    DISK_STATEMENT = "disk_statement"
    """A person or a rule stated something about a disk that does not end its life."""
    OUTLOOK_WORSE = "outlook_worse"
    OUTLOOK_DOUBLED = "outlook_doubled"
    OUTLOOK_BETTER = "outlook_better"
    DRAIN_PROPOSED = "drain_proposed"
    DRAIN_APPROVED = "drain_approved"
    DRAIN_PREPARING = "drain_preparing"
    DRAIN_DRAINING = "drain_draining"
    DRAIN_HOLDING = "drain_holding"
    DRAIN_PAUSED = "drain_paused"
    DRAIN_DRAINED = "drain_drained"
    DRAIN_VERIFIED = "drain_verified"
    DRAIN_HANDED_OVER = "drain_handed_over"
    DRAIN_CANCELLING = "drain_cancelling"
    DRAIN_CANCELLED = "drain_cancelled"
    DRAIN_FAILED = "drain_failed"
    HALTED = "halted"
    HALT_LIFTED = "halt_lifted"
    CONTROLLER_CHANGED = "controller_changed"


_GROUPS = {
    HistoryKind.HALTED: HistoryGroup.HALT,
    HistoryKind.HALT_LIFTED: HistoryGroup.HALT,
    HistoryKind.CONTROLLER_CHANGED: HistoryGroup.CONTROLLER,
}


def group_of(kind: HistoryKind) -> HistoryGroup:
    """Return the subject of events of this kind."""
    return _GROUPS.get(kind) or HistoryGroup(kind.value.partition("_")[0])
