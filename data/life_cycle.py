"""The life cycle of a disk: the closed lists and values in which its state is told.

Every reader (page, alerts, messages, metrics, REST, command line) takes the state of a disk from a `DiskLife`, and none
works it out again; `data.life_decision` is the rule. The severity of a disk is another field. It is asked of disks that
live, and it is what the outlook says of itself (`Outlook.severity`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.outlook import Status


class LifeState(StrEnum):
    """Where a disk is in its life. FAILED and RETIRED are ends; the others are living states."""

    NEW = "new"
    """It is known, and nobody could judge it yet."""
    IN_SERVICE = "in_service"
    SILENT = "silent"
    """It has not answered for two reading intervals."""
    DRAINING = "draining"
    DRAINED = "drained"
    """No data is left on it, and it waits to be swapped."""
    FILLING = "filling"
    FAILED = "failed"
    RETIRED = "retired"

    @property
    def is_living(self) -> bool:
        """Whether a severity and a forecast are asked of the disk."""
        return self not in (LifeState.FAILED, LifeState.RETIRED)


class RetiredWhy(StrEnum):
    """Why a disk is retired."""

    REPLACED = "replaced"
    """Another disk stands in its slot."""
    REMOVED = "removed"
    """It was taken out of the cluster, and its slot went with it or is empty."""
    MOVED = "moved"
    """The history belongs to the disk in the host where it lives now."""
    LOST = "lost"
    """Its host reads it no more, or nobody has read it for a week."""


class LifeSource(StrEnum):
    """What made a change known."""

    CLUSTER = "cluster"
    COLLECTOR = "collector"
    PERSON = "person"


class LifeEvidence(StrEnum):
    """What a change rests on; `LifeChange.subject` names the thing itself."""

    NAMED_BY_CLUSTER = "named_by_cluster"
    """The cluster's device list names the disk, and no reading has come. Subject: the OSD."""
    FIRST_READING = "first_reading"
    """A first reading came, which could not be judged yet. Subject: the host."""
    READING = "reading"
    """A reading. Subject: the host."""
    NO_READING = "no_reading"
    """No reading came any more. Subject: the host."""
    NOT_LISTED = "not_listed"
    """The host is awake and reads the disk no more. Subject: the host."""
    UNREADABLE = "unreadable"
    """The disk does not answer its host. Subject: the cause (data.unreadable)."""
    DRAIN = "drain"
    """Subject: the id of the drain or fill."""
    OSD_SERVES = "osd_serves"
    """An OSD runs on the disk again. Subject: the OSD."""
    OTHER_DISK = "other_disk"
    """Another disk stands in its slot. Subject: that disk."""
    OSD_GONE = "osd_gone"
    """The cluster has its OSD no more. Subject: the OSD."""
    STATEMENT = "statement"
    """A statement about the disk's end. Subject: the person."""
    HISTORY_MOVED = "history_moved"
    """The readings of the host were settled to be of another disk. Subject: the host."""


@dataclass(frozen=True, slots=True)
class LifeChange:
    """One change in the life of a disk; the last one says how the disk stands now."""

    device: DeviceId
    at: datetime
    state: LifeState
    source: LifeSource
    evidence: LifeEvidence
    subject: str = ""
    why: RetiredWhy | None = None
    """Of a retired disk."""
    host: HostName | None = None
    osds: tuple[OsdId, ...] = ()
    """The slots of the disk: OSDs whose data lies on it; of a disk that has ended, those that it had last."""
    successor: DeviceId | None = None
    """The disk that stands in its slot now, where it is another one."""

    @property
    def standing(self) -> tuple[object, ...]:
        """What makes a new change where it differs."""
        return self.state, self.why, self.host, self.osds, self.successor


@dataclass(frozen=True, slots=True)
class DiskLife:
    """How a disk stands now."""

    change: LifeChange
    severity: Status | None
    """How ill the disk is; None: this is not asked of a disk that failed or is retired."""

    @property
    def state(self) -> LifeState:
        """Where the disk is in its life."""
        return self.change.state

    @property
    def is_living(self) -> bool:
        """Whether a severity and a forecast are asked of the disk."""
        return self.change.state.is_living

    @property
    def holds_data(self) -> bool:
        """Whether data may lie on the disk, so that alerts and messages tell how ill it is."""
        return self.is_living and self.state is not LifeState.DRAINED
