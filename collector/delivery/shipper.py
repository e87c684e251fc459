"""Carries the spool to the sink: new records at once, the backlog slowly, and retries seldom while the
sink is silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

import structlog

from predrain.collector.delivery.sinks import DeliveryResult, Sink, SinkUnavailable
from predrain.collector.delivery.spool import DeliveryBatch, Spool
from predrain.data.clock import Clock
from predrain.data.latency_windows import LatencyBatch
from predrain.data.log.log_port import Record, Topic
from predrain.data.reading import Reading
from predrain.data.wire import FUTURE, decode_envelope

ASIDE = timedelta(minutes=5)
"""Longest time that a record stays aside when the sink defers it: clocks are set, and tokens are exchanged."""
CLOCKS_APART = 3600.0
"""Seconds. If the sink's clock is further behind, nothing is delivered until one of the clocks is set: otherwise the
sink would, as time passes, take readings of hours ago for readings of now."""


@dataclass(frozen=True, slots=True)
class DeliveryPace:
    """The pace of delivery. It keeps the hosts of a cluster from returning all at once after an outage."""

    idle_seconds: float = 1.0
    """Seconds between two polls of an empty spool."""
    first_pause_seconds: float = 1.0
    longest_pause_seconds: float = 120.0
    """A pause is drawn between half and the whole of a length that doubles up to this many seconds."""
    backlog_per_second: float = 200.0
    """Records of the backlog sent in a second. New records go first and are not slowed down."""


class Shipper:
    """Delivers one spool to one sink. One thread calls `ship_batch`."""

    def __init__(
        self, spool: Spool, sink: Sink, clock: Clock, random: Random, pace: DeliveryPace | None = None
    ) -> None:
        self.trouble: str | None = None
        """The reason why nothing is delivered now; None while the sink answers."""
        self._spool, self._sink, self._clock, self._random = spool, sink, clock, random
        self._pace = pace or DeliveryPace()
        self._failures = 0
        self._aside: dict[int, datetime] = {}
        """Numbers of the entries that the sink deferred, each with the time at which it is due again."""

    def ship_batch(self) -> float:
        """Deliver one batch, if there is one; return the seconds to wait before the next call."""
        now = self._clock.now()
        self._aside = {one: due for one, due in self._aside.items() if timedelta(0) < due - now <= ASIDE}
        batch = self._spool.take_batch(self._aside)
        if batch is None:
            return self._pace.idle_seconds
        try:
            answer = self._sink.deliver(batch.topic, batch.records)
            aside, refused = _split_rejected_records(batch, answer, now)
        except SinkUnavailable as away:
            return max(away.after * self._random.uniform(1.0, 1.5), self._pause(str(away)))
        self._spool.settle_batch(batch, now, refused=len(refused), aside=aside)
        for sentence in refused:
            structlog.get_logger().warning("record refused", reason=sentence)
        if aside:
            self._put_aside(aside, answer.later[0].why)
        if len(aside) < len(batch.entries):
            self._answered()
        return len(batch.entries) / self._pace.backlog_per_second if batch.late else 0.0

    def _put_aside(self, aside: Mapping[int, datetime], why: str) -> None:
        if not self._aside:
            structlog.get_logger().warning("not taken now, the spool keeps it", reason=why)
        self._aside |= aside
        self.trouble = why

    def _answered(self) -> None:
        if self._failures:
            structlog.get_logger().info("delivering again", after_failures=self._failures)
        self.trouble, self._failures = None, 0

    def _pause(self, why: str) -> float:
        if not self._failures:
            structlog.get_logger().warning("nothing is delivered, the spool keeps it", reason=why)
        self.trouble = why
        length = min(
            self._pace.first_pause_seconds * 2.0 ** min(self._failures, 30), self._pace.longest_pause_seconds
        )
        self._failures += 1
        return length * self._random.uniform(0.5, 1.0)


def _split_rejected_records(
    batch: DeliveryBatch, answer: DeliveryResult, now: datetime
) -> tuple[dict[int, datetime], list[str]]:
    """Return the deferred entry numbers, each with its due time, and a sentence for each record that is never taken.

    Raises SinkUnavailable when the clocks are so far apart that the whole batch has to wait.
    """
    aside: dict[int, datetime] = {}
    refused = list(answer.refused)
    for one in answer.later:
        entry = batch.entries[one.place]
        if _find_latest_time(batch.topic, entry.record) > now + FUTURE:
            refused.append(f"{one.why}; the clock here was set back since, so when it was is not known")
        elif one.seconds > CLOCKS_APART:
            raise SinkUnavailable(one.why)
        else:
            aside[entry.number] = now + min(timedelta(seconds=max(one.seconds, 1.0)), ASIDE)
    return aside, refused


def _find_latest_time(topic: Topic, record: Record) -> datetime:
    """Return the latest time in a record of this host."""
    if topic is Topic.READINGS:
        return decode_envelope(record.value, Reading).body.taken_at
    windows = decode_envelope(record.value, LatencyBatch).body.windows
    return max((one.window_start for one in windows), default=datetime.min.replace(tzinfo=UTC))
