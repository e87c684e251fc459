"""Readings and summaries to deliver, and sinks that remember what they were given."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from predrain.collector.delivery import DeferredRecord, DeliveryResult, SinkUnavailable
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.latency_windows import LatencyBatch, LatencySummary
from predrain.data.log.log_port import Record, Topic
from predrain.data.reading import Counters, Identity, Protocol, Reading, Smart
from predrain.data.wire import decode_envelope

HOST = HostName("ceph-17")
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def reading(disk: int, hour: float = 0, model: str = "ST4000DM000") -> Reading:
    """Disk number `disk`, so many hours after noon; `hour` is its power-on hours as well."""
    at = NOON + timedelta(hours=hour)
    seen = Smart(Protocol.ATA, Identity("Seagate", model), True, Counters(), power_on_hours=int(hour))
    return Reading(DeviceId(f"ST4000DM000_{disk:04d}"), HOST, at, at, seen)


def summary(osd: int, minute: float = 0) -> LatencySummary:
    """OSD number `osd`, so many minutes after noon."""
    return LatencySummary(OsdId(osd), HOST, NOON + timedelta(minutes=minute), 60.0, 1000, 1.5, 9.25)


def reading_of(record: Record) -> Reading:
    """Return the reading that a record holds."""
    return decode_envelope(record.value, Reading).body


def batch_of(record: Record) -> LatencyBatch:
    """Return the latency batch that a record holds."""
    return decode_envelope(record.value, LatencyBatch).body


class RecordingSink:
    """Takes what it is given while `away` is None, and refuses the records of `refuses` (keys) for good."""

    def __init__(self) -> None:
        self.away: SinkUnavailable | None = None
        self.refuses: set[str] = set()
        self.later: dict[str, float] = {}
        """Seconds by key of the records that it takes another time."""
        self.calls: list[tuple[Topic, tuple[Record, ...]]] = []
        self.asked = 0

    def deliver(self, topic: Topic, records: Sequence[Record]) -> DeliveryResult:
        self.asked += 1
        if self.away is not None:
            raise self.away
        self.calls.append((topic, tuple(records)))
        later = [
            DeferredRecord(place, f"the time of {record.key} has not come", self.later[record.key])
            for place, record in enumerate(records)
            if record.key in self.later
        ]
        refused = tuple(f"{record.key} is not wanted" for record in records if record.key in self.refuses)
        return DeliveryResult(refused, tuple(later))

    def close(self) -> None:
        pass

    def given(self, topic: Topic = Topic.READINGS) -> list[Record]:
        return [record for at, records in self.calls if at is topic for record in records]
