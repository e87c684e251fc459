"""Disks that answer slower than their peers: a failure that has not been reported yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from predrain.data.ids import HostName, OsdId


@dataclass(frozen=True, slots=True)
class SlowOsd:
    """An OSD that is slow now, beside the other OSDs of its host and device class."""

    osd: OsdId
    host: HostName
    since: datetime
    """Start of the first hour, or day, without a break over the limit."""
    as_of: datetime
    """End of the newest hour that was judged."""
    ratio: float
    """Its latency over that of its peers, 1 is like them."""
    lasting: bool
    """Slow by the rule for days: enough to drain it. Else only by the rule for hours."""
    reason: str

    @property
    def lasted(self) -> timedelta:
        """How long it has been slow."""
        return self.as_of - self.since


@dataclass(frozen=True, slots=True)
class SlowHost:
    """A host whose disks all answer slower than other hosts': to be looked into, and no reason to drain them."""

    host: HostName
    since: datetime
    ratio: float
    reason: str


@dataclass(frozen=True, slots=True)
class Slowness:
    """All that is slow now, each once."""

    as_of: datetime | None = None
    """End of the newest hour that was judged; None before the first."""
    osds: Mapping[OsdId, SlowOsd] = field(default_factory=dict)
    hosts: tuple[SlowHost, ...] = ()
    judged: frozenset[OsdId] = frozenset()
    """OSDs of which that hour tells anything. One that is not here is neither slow nor well: not known."""

    def well(self, osd: OsdId, now: datetime, age_max: timedelta) -> bool:
        """Whether it is known, not longer ago than `age_max`, that the OSD answers like its peers."""
        return self.recent(now, age_max) and osd in self.judged and osd not in self.osds

    def recent(self, now: datetime, age_max: timedelta) -> bool:
        """Whether an hour was judged that ended not longer ago than `age_max`."""
        return self.as_of is not None and now - self.as_of <= age_max
