"""A cause of a notification: one value per cause, for any number of disks, hosts or parts that it affects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from predrain.actions.core.drain_policy import Policy
from predrain.data.ids import DeviceId, HostName
from predrain.data.outlook import Outlook
from predrain.data.residence import ResidenceLimits
from predrain.service.fleet.cluster_overview import ClusterOverview
from predrain.service.fleet.fleet import FleetSnapshot

CLUSTER_KEYS = "cluster keys"
"""The name of the part that is broken while texts in the cluster carry no valid signature."""


class Severity(StrEnum):
    """The urgency of a cause: a notice can wait for working hours."""

    NOTICE = "notice"
    URGENT = "urgent"

    def reaches(self, least: Severity) -> bool:
        """Return whether this severity is `least` or worse."""
        return self is Severity.URGENT or least is Severity.NOTICE


class AlertCauseKind(StrEnum):
    """The kinds of a cause."""

    SICK_DISKS = "sick_disks"
    HOT_DISKS = "hot_disks"
    CONTESTED_DISKS = "contested_disks"
    """Two hosts name a disk at the same time."""
    SILENT_HOSTS = "silent_hosts"
    HOST_MISMATCH = "host_mismatch"
    """A host delivers under the token of another name."""
    UNREADABLE_DISKS = "unreadable_disks"
    UNABLE_HOSTS = "unable_hosts"
    """Hosts cannot ask their disks."""
    FAILED_DRAINS = "failed_drains"
    HELD_DRAINS = "held_drains"
    STILL_DRAINS = "still_drains"
    EMPTY_DISKS = "empty_disks"
    HALTED = "halted"
    BROKEN_PART = "broken_part"
    FORECAST_DOUBT = "forecast_doubt"
    MODEL_ELSEWHERE = "model_elsewhere"
    """A drive model turns bad in other clusters, and disks of that model are here."""


@dataclass(frozen=True, slots=True)
class CausePart:
    """One disk, host, drain or part of a cause."""

    name: str
    """The same at each poll: a kind with a device id, a host, a drain's id or a part."""
    line: str
    """The finding, its reason, its certainty, and predrain's action."""
    severity: Severity = Severity.NOTICE
    host: str | None = None
    """The host of the point, since a cause may affect many hosts."""
    model: str | None = None
    """The model of the drive."""
    rack: str | None = None
    """The rack of the host, where the cluster knows one."""


@dataclass(frozen=True, slots=True)
class AlertCause:
    """A condition that is present now. Two polls that find the same `key` found the same cause."""

    key: str
    title: str
    """One line without a full stop."""
    points: tuple[CausePart, ...]
    """The worst first; never empty."""
    todo: str
    """The action for a person, a sentence."""
    path: str
    """The path on the page that shows the cause."""
    host: str | None = None
    """The host, if the cause affects only one."""
    model: str | None = None
    """The drive model, if the cause affects only one."""
    kind: AlertCauseKind | None = None
    """The kind for programs. None: the cause is over, or it is a test."""

    @property
    def severity(self) -> Severity:
        """The severity of the worst point."""
        urgent = any(point.severity is Severity.URGENT for point in self.points)
        return Severity.URGENT if urgent else Severity.NOTICE

    @property
    def names(self) -> frozenset[str]:
        """The names of the points."""
        return frozenset(point.name for point in self.points)


@dataclass(frozen=True, slots=True)
class ForecastConcern:
    """A doubt about the forecast itself, or a part that is broken: `name`, a sentence, and the cure."""

    name: str
    sentence: str
    cure: str = ""


@dataclass(frozen=True, slots=True)
class ClustersInView:
    """The overview of the own cluster, and the last overviews of the other clusters."""

    own: ClusterOverview
    others: tuple[ClusterOverview, ...]


@dataclass(frozen=True, slots=True)
class AlertSnapshot:
    """The data from which causes are made, at one instant."""

    fleet: FleetSnapshot
    told: Mapping[DeviceId, Outlook]
    """The last announced outlook of each device, which has the time and the reason of its severity."""
    now: datetime
    stale_after: timedelta
    """A disk without a reading for this time counts as not read."""
    policy: Policy
    broken: tuple[ForecastConcern, ...] = ()
    """Parts of this service that do not work now."""
    doubts: tuple[ForecastConcern, ...] = ()
    """Doubts about the forecast."""
    settled: bool = True
    """True if hosts had time to deliver since the start of this process, and their readings are consumed."""
    host_mismatches: Mapping[HostName, HostName] = field(default_factory=dict)
    """Hosts whose token comes with readings that name another host, and that other host."""
    limits: ResidenceLimits = field(default_factory=ResidenceLimits)
    """The times after which the silence of a disk's host proves a move, and after which a person is asked."""
    clusters: ClustersInView | None = None
    """The clusters in numbers; None if no other cluster is configured."""

    def find_reporting_hosts(self) -> frozenset[HostName]:
        """Return the hosts with a disk that was read lately."""
        read = self.fleet.readings.values()
        return frozenset(one.host for one in read if self.now - one.taken_at <= self.stale_after)
