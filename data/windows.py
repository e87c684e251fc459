"""Latencies by column: what a host's OSDs did in windows that began at one instant.

A host asks its OSDs all at once, so that their windows nearly always begin together. Sixty OSDs are then one value
and seventeen lists, which are written, kept and compared at a tenth of the cost of sixty values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import attrgetter
from typing import Any

import msgspec

from predrain.data.ids import HostName, OsdId
from predrain.data.reading import LatencySummary


@dataclass(frozen=True, slots=True)
class Windows:
    """As many `LatencySummary`s as there are OSDs: the n-th entries of all columns are one. No OSD is there twice."""

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
    sound: bool = field(default=False, compare=False, kw_only=True)
    """Whether it was seen when they were read that every number can be true (data.wire.windows)."""

    @classmethod
    def of(cls, summaries: Iterable[LatencySummary]) -> tuple[Windows, ...]:
        """Summaries as windows, ordered by host and start; of two of one OSD and start the first counts."""
        groups: defaultdict[tuple[HostName, datetime], dict[OsdId, LatencySummary]] = defaultdict(dict)
        for one in summaries:
            groups[one.host, one.window_start].setdefault(one.osd, one)
        return tuple(
            cls(host, start, *map(list, zip(*(_row(group[osd]) for osd in sorted(group)), strict=True)))
            for (host, start), group in sorted(groups.items())
        )

    def joined(self, other: Windows) -> Windows:
        """These, and what OSDs that are not among them did by `other`, which is of the same host and start."""
        if set(other.osd) <= set(self.osd):
            return self
        (joined,) = Windows.of((*self.summaries(), *other.summaries()))
        return joined

    def summaries(self) -> tuple[LatencySummary, ...]:
        """One a row, in their order."""
        rows = zip(*_columns(self), strict=True)
        forms = [_Form(self.host, self.window_start, *row) for row in rows]
        return msgspec.convert(forms, tuple[LatencySummary, ...], from_attributes=True)

    def summary(self, osd: OsdId) -> LatencySummary | None:
        """That OSD's, if it is among them."""
        if osd not in self.osd:
            return None
        place = self.osd.index(osd)
        return LatencySummary(osd, self.host, self.window_start, *(one[place] for one in _columns(self)[1:]))


COLUMNS = tuple(one.name for one in fields(Windows))[2:-1]
"""Names of the columns, in order."""
_columns: Any = attrgetter(*COLUMNS)
_row: Any = attrgetter(*COLUMNS)
# The dataclass itself takes four times as long to make from a row.
_Form = msgspec.defstruct("LatencySummary", [(name, Any) for name in ("host", "window_start", *COLUMNS)])
