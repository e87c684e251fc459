"""Latencies of OSDs: of one OSD in one window, and by column the windows of a host's OSDs that began at one instant.

A host asks all of its OSDs at once, so their windows nearly always begin together. Sixty OSDs are then one value and
seventeen lists, which are written, stored and compared at a tenth of the cost of sixty values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec

from predrain.data.ids import ClusterId, HostName, OsdId


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """One OSD over one window, as its host measured it. Latencies are in ms; None means no data, never 0.

    If a store has merged windows that are older than a day, `*_p50` is the median of their values, weighted by
    operations, and `*_p99` is the highest of their values.
    """

    osd: OsdId
    host: HostName
    window_start: datetime
    window_seconds: float
    operations: int
    read_ms_p50: float | None = None
    read_ms_p99: float | None = None
    write_ms_p50: float | None = None
    write_ms_p99: float | None = None
    commit_ms_p50: float | None = None
    commit_ms_p99: float | None = None
    device_await_ms: float | None = None
    iops: float | None = None
    queue: float | None = None
    slow_ops: int | None = None
    backfills_max: int | None = None
    """Backfills that the OSD runs at once as a primary (`local_reservations.max_allowed`). This is the limit in
    force, which may differ from the configured one."""
    recovering: bool | None = None
    """True if the OSD recovered or backfilled within the window."""
    scrubbing: bool | None = None
    """True if the OSD scrubbed within the window."""
    cluster: ClusterId | None = None
    """The cluster of the OSD; None: the host's collector does not report it."""


@dataclass(frozen=True, slots=True)
class LatencyWindows:
    """As many `LatencySummary`s as there are OSDs: the n-th entries of all columns are one.

    The OSDs are of one cluster, and none is there twice.
    """

    host: HostName
    window_start: datetime
    osd: Sequence[OsdId]
    window_seconds: Sequence[float]
    operations: Sequence[int]
    read_ms_p50: Sequence[float | None]
    read_ms_p99: Sequence[float | None]
    write_ms_p50: Sequence[float | None]
    write_ms_p99: Sequence[float | None]
    commit_ms_p50: Sequence[float | None]
    commit_ms_p99: Sequence[float | None]
    device_await_ms: Sequence[float | None]
    iops: Sequence[float | None]
    queue: Sequence[float | None]
    slow_ops: Sequence[int | None]
    backfills_max: Sequence[int | None]
    recovering: Sequence[bool | None]
    scrubbing: Sequence[bool | None]
    cluster: ClusterId | None = field(default=None, kw_only=True)
    """The cluster of the OSDs; None: the host's collector does not report it."""
    sound: bool = field(default=False, compare=False, kw_only=True)
    """True if it was checked during decoding that every number is plausible (data.wire.latency_wire)."""

    @classmethod
    def from_summaries(cls, summaries: Iterable[LatencySummary]) -> tuple[LatencyWindows, ...]:
        """Return the summaries as windows, ordered by host, start and cluster; of two of one OSD and start the first
        counts.
        """
        groups: defaultdict[tuple[HostName, datetime, str], dict[OsdId, LatencySummary]] = defaultdict(dict)
        for one in summaries:
            groups[one.host, one.window_start, one.cluster or ""].setdefault(one.osd, one)
        return tuple(
            cls(
                host,
                start,
                *map(list, zip(*(_row(group[osd]) for osd in sorted(group)), strict=True)),
                cluster=ClusterId(cluster) if cluster else None,
            )
            for (host, start, cluster), group in sorted(groups.items())
        )

    def add_missing_osds(self, other: LatencyWindows) -> LatencyWindows:
        """Return these windows plus the OSDs of `other` that they lack.

        `other` is of the same host, start and cluster.
        """
        if set(other.osd) <= set(self.osd):
            return self
        (joined,) = LatencyWindows.from_summaries((*self.summaries(), *other.summaries()))
        return joined

    def summaries(self) -> tuple[LatencySummary, ...]:
        """Return one summary for each row, in their order."""
        rows = zip(*_columns(self), strict=True)
        forms = [_Form(self.host, self.window_start, self.cluster, *row) for row in rows]
        return msgspec.convert(forms, tuple[LatencySummary, ...], from_attributes=True)

    def find_osd_summary(self, osd: OsdId) -> LatencySummary | None:
        """Return the summary of that OSD, or None if there is none."""
        if osd not in self.osd:
            return None
        place = self.osd.index(osd)
        row = (one[place] for one in _columns(self))
        form = _Form(self.host, self.window_start, self.cluster, *row)
        return msgspec.convert(form, LatencySummary, from_attributes=True)


@dataclass(frozen=True, slots=True)
class LatencyBatch:
    """The latencies that one host measured of its OSDs: the unit in which latencies are sent."""

    host: HostName
    windows: tuple[LatencyWindows, ...]
    lost: int = 0
    """Summaries that the host could neither send nor keep since the previous batch."""

    @property
    def summaries(self) -> tuple[LatencySummary, ...]:
        """The summaries, one for each OSD and window."""
        return tuple(chain.from_iterable(one.summaries() for one in self.windows))


_BESIDE = ("host", "window_start", "cluster")
"""The fields of windows that all of their OSDs share."""
COLUMNS = tuple(one.name for one in fields(LatencyWindows) if one.name not in (*_BESIDE, "sound"))
"""Names of the columns, in order."""
_columns: Any = attrgetter(*COLUMNS)
_row: Any = attrgetter(*COLUMNS)
# Building the dataclass itself from a row takes four times as long.
_Form = msgspec.defstruct("LatencySummary", [(name, Any) for name in (*_BESIDE, *COLUMNS)])
