"""What a person may have to hear of: one value a cause, however many disks, hosts or parts it touches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from predrain.actions.core.policy import Policy
from predrain.data.ids import DeviceId, HostName
from predrain.data.outlook import Outlook
from predrain.data.residence import ResidenceLimits
from predrain.service.fleet import FleetSnapshot

CLUSTER_KEYS = "cluster keys"
"""The part that is broken while texts in the cluster carry no good signature."""


class Severity(StrEnum):
    """Whether it can wait for working hours."""

    NOTICE = "notice"
    URGENT = "urgent"

    def reaches(self, least: Severity) -> bool:
        """Whether it is `least` or worse."""
        return self is Severity.URGENT or least is Severity.NOTICE


@dataclass(frozen=True, slots=True)
class CausePart:
    """One disk, host, drain or part of a cause."""

    name: str
    """The same at every look: a device id, a host, a drain's id, a part."""
    line: str
    """What, why, how sure, and what predrain does about it."""
    severity: Severity = Severity.NOTICE
    host: str | None = None
    """Where it is: a cause may be of many hosts."""
    model: str | None = None
    """Of the drive."""


@dataclass(frozen=True, slots=True)
class AlertCause:
    """Something that stands now. Two looks that find the same `key` found the same cause."""

    key: str
    title: str
    """One line without a full stop."""
    points: tuple[CausePart, ...]
    """The worst first; never empty."""
    todo: str
    """What a person should do, a sentence."""
    path: str
    """Where the page shows it."""
    host: str | None = None
    """The one host that it concerns."""
    model: str | None = None
    """The one drive model that it concerns."""

    @property
    def severity(self) -> Severity:
        """Of its worst point."""
        urgent = any(point.severity is Severity.URGENT for point in self.points)
        return Severity.URGENT if urgent else Severity.NOTICE

    @property
    def names(self) -> frozenset[str]:
        """What it is about."""
        return frozenset(point.name for point in self.points)


@dataclass(frozen=True, slots=True)
class Worry:
    """A doubt about the forecast itself, or a part that is broken: `name`, a sentence, and the cure."""

    name: str
    sentence: str
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that causes are made of, at one instant."""

    sight: FleetSnapshot
    told: Mapping[DeviceId, Outlook]
    """The outlook that was last announced of each device: when it turned, and for which reason."""
    now: datetime
    stale_after: timedelta
    """A disk without a reading for so long is not being read."""
    policy: Policy
    broken: tuple[Worry, ...] = ()
    """Parts of this service that do not work now."""
    doubts: tuple[Worry, ...] = ()
    """Doubts about the forecast."""
    settled: bool = True
    """Whether hosts had time to deliver, since this process is up long enough, and what they deliver is taken."""
    misnamed: Mapping[HostName, HostName] = field(default_factory=dict)
    """Hosts whose token comes with readings that name another one, and whom."""
    limits: ResidenceLimits = field(default_factory=ResidenceLimits)
    """When the silence of a disk's host settles that the disk moved, and when a person is asked."""

    def awake(self) -> frozenset[HostName]:
        """Hosts of which a disk was read lately."""
        read = self.sight.readings.values()
        return frozenset(one.host for one in read if self.now - one.taken_at <= self.stale_after)
