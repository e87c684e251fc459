"""Disks that answer slower than their peers: a failure that has not been reported yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from predrain.data.ids import HostName, OsdId


@dataclass(frozen=True, slots=True)
class SlowOsd:
    """An OSD that is slow now, compared with the other OSDs of its host and device class."""

    osd: OsdId
    host: HostName
    since: datetime
    """Start of the first hour, or day, without a break over the limit."""
    as_of: datetime
    """End of the newest hour that was judged."""
    ratio: float
    """The OSD's latency divided by that of its peers; 1 is equal."""
    lasting: bool
    """True if the OSD is slow by the rule for days, which is enough to drain it; else only by the rule for hours."""
    reason: str

    @property
    def slow_duration(self) -> timedelta:
        """Time for which the OSD has been slow."""
        return self.as_of - self.since


@dataclass(frozen=True, slots=True)
class SlowHost:
    """A host whose disks all answer slower than those of other hosts. It should be examined; its disks
    need no drain.
    """

    host: HostName
    since: datetime
    ratio: float
    reason: str


@dataclass(frozen=True, slots=True)
class Slowness:
    """All OSDs and hosts that are slow now, each once."""

    as_of: datetime | None = None
    """End of the newest hour that was judged; None before the first."""
    osds: Mapping[OsdId, SlowOsd] = field(default_factory=dict)
    hosts: tuple[SlowHost, ...] = ()
    judged: frozenset[OsdId] = frozenset()
    """OSDs with data in that hour. An OSD that is not in the set is neither slow nor well, but unknown."""

    def is_known_healthy(self, osd: OsdId, now: datetime, age_max: timedelta) -> bool:
        """Return whether the OSD answered like its peers in an hour that ended not longer ago than `age_max`."""
        return self.is_recent(now, age_max) and osd in self.judged and osd not in self.osds

    def is_recent(self, now: datetime, age_max: timedelta) -> bool:
        """Return whether an hour was judged that ended not longer ago than `age_max`."""
        return self.as_of is not None and now - self.as_of <= age_max
