"""One event, and the data from which events are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from predrain.data.cluster_event import ClusterEvent
from predrain.data.drain import DrainState, Intent
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import LifeChange
from predrain.data.outcome import Outcome
from predrain.data.outlook import Status
from predrain.service.events.event_kinds import HistoryKind

KnownChange: TypeAlias = ClusterEvent | LifeChange | Outcome
"""One change as the service knows it."""


@dataclass(frozen=True, slots=True)
class CurrentPlaces:
    """The present places of disks and OSDs, and the last places of disks that have ended, which a change itself
    lacks.
    """

    hosts: Mapping[OsdId, HostName] = field(default_factory=dict)
    disks: Mapping[OsdId, DeviceId] = field(default_factory=dict)
    osds: Mapping[DeviceId, OsdId] = field(default_factory=dict)
    homes: Mapping[DeviceId, HostName] = field(default_factory=dict)
    """The host that read a disk last."""


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """Something that happened. Fields that do not apply or are unknown are None."""

    at: datetime
    kind: HistoryKind
    host: HostName | None = None
    device: DeviceId | None = None
    osd: OsdId | None = None
    drain: str | None = None
    state: DrainState | None = None
    intent: Intent | None = None
    severity: Status | None = None
    successor: DeviceId | None = None
    why: str = ""
    """Text for people: a reason, a note, a guard's sentence."""
    by: str = ""
    """The person or process that caused or stated the event, if there is a name."""

    @property
    def key(self) -> tuple[str, ...]:
        """A key that distinguishes and orders the events of one instant."""
        return (
            self.kind,
            self.device or "",
            "" if self.osd is None else str(self.osd),
            self.drain or "",
            self.why,
        )
