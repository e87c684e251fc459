"""The life cycle of a disk: its states and the evidence for them, as closed lists and values.

Every reader (page, alerts, messages, metrics, REST, command line) takes the state of a disk from a `DiskLife`, and
none computes it again; `data.life_decision` is the rule. The severity of a disk is another field. Only living disks
have a severity, and it comes from the outlook (`Outlook.severity`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.outlook import Status


class LifeState(StrEnum):
    """The states in the life of a disk. FAILED and RETIRED are ends; the others are living states."""

    NEW = "new"
    """The disk is known, and there is no judgement of it yet."""
    IN_SERVICE = "in_service"
    SILENT = "silent"
    """The disk has not answered for two reading intervals."""
    DRAINING = "draining"
    DRAINED = "drained"
    """No data is left on the disk, and it waits to be swapped."""
    FILLING = "filling"
    FAILED = "failed"
    RETIRED = "retired"

    @property
    def is_living(self) -> bool:
        """True if the disk has a severity and a forecast."""
        return self not in (LifeState.FAILED, LifeState.RETIRED)


class RetiredWhy(StrEnum):
    """The reasons for which a disk is retired."""

    REPLACED = "replaced"
    """Another disk stands in the retired disk's slot."""
    REMOVED = "removed"
    """The disk was taken out of the cluster, and its slot was removed with it or is empty."""
    MOVED = "moved"
    """The history belongs to the disk in the host where it lives now."""
    LOST = "lost"
    """The disk's host no longer reads it, or no host has read it for a week."""


class LifeSource(StrEnum):
    """The source from which a change became known."""

    CLUSTER = "cluster"
    COLLECTOR = "collector"
    PERSON = "person"


class LifeEvidence(StrEnum):
    """The kind of evidence for a change; `LifeChange.subject` names the thing itself."""

    NAMED_BY_CLUSTER = "named_by_cluster"
    """The cluster's device list names the disk, and no reading has come. Subject: the OSD."""
    FIRST_READING = "first_reading"
    """A first reading came, which could not be judged yet. Subject: the host."""
    READING = "reading"
    """A reading. Subject: the host."""
    NO_READING = "no_reading"
    """Readings stopped. Subject: the host."""
    NOT_LISTED = "not_listed"
    """The host is awake and no longer reads the disk. Subject: the host."""
    UNREADABLE = "unreadable"
    """The disk does not answer its host. Subject: the cause (data.unreadable)."""
    DRAIN = "drain"
    """A drain or fill. Subject: its id."""
    OSD_SERVES = "osd_serves"
    """An OSD runs on the disk again. Subject: the OSD."""
    OTHER_DISK = "other_disk"
    """Another disk stands in the slot. Subject: that disk."""
    OSD_GONE = "osd_gone"
    """The cluster no longer has the disk's OSD. Subject: the OSD."""
    STATEMENT = "statement"
    """A statement about the disk's end. Subject: the person."""
    HISTORY_MOVED = "history_moved"
    """A person or rule decided that the host's readings are of another disk. Subject: the host."""


@dataclass(frozen=True, slots=True)
class LifeChange:
    """One change in the life of a disk. The last change is the present state."""

    device: DeviceId
    at: datetime
    state: LifeState
    source: LifeSource
    evidence: LifeEvidence
    subject: str = ""
    why: RetiredWhy | None = None
    """The reason why the disk is retired, for a retired disk."""
    host: HostName | None = None
    osds: tuple[OsdId, ...] = ()
    """The slots of the disk: the OSDs whose data lies on it, or lay on it last if the disk has ended."""
    successor: DeviceId | None = None
    """The disk that stands in the slot now, if it is another one."""

    @property
    def state_key(self) -> tuple[object, ...]:
        """The values that make a new change when they differ."""
        return self.state, self.why, self.host, self.osds, self.successor


@dataclass(frozen=True, slots=True)
class DiskLife:
    """The present life of a disk."""

    change: LifeChange
    severity: Status | None
    """The severity of the disk's outlook; None for a disk that failed or is retired."""

    @property
    def state(self) -> LifeState:
        """The state of the disk in its life."""
        return self.change.state

    @property
    def is_living(self) -> bool:
        """True if the disk has a severity and a forecast."""
        return self.severity is not None

    @property
    def holds_data(self) -> bool:
        """True if data may lie on the disk, so that alerts and messages report its severity."""
        return self.is_living and self.state is not LifeState.DRAINED
