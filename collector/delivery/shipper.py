"""Carries the spool to the sink: at once what is new, slowly what is left over, seldom while nobody answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

import structlog

from predrain.collector.delivery.sink import Away, DeliveryResult, Sink
from predrain.collector.delivery.spool import DeliveryBatch, Spool
from predrain.data.clock import Clock
from predrain.data.log.port import Record, Topic
from predrain.data.reading import LatencyBatch, Reading
from predrain.data.wire import FUTURE, decode

ASIDE = timedelta(minutes=5)
"""Longest that a record which the sink takes another time stays aside: clocks are set, and tokens are exchanged."""
CLOCKS_APART = 3600.0
"""Seconds. A sink whose clock is further behind gets nothing until one of the two is set: as time passes it would take
what was read hours ago as what is read now."""


@dataclass(frozen=True, slots=True)
class DeliveryPace:
    """How a host comes back after an outage without its whole cluster coming at once."""

    idle_seconds: float = 1.0
    """Between two looks at an empty spool."""
    first_pause_seconds: float = 1.0
    longest_pause_seconds: float = 120.0
    """A pause is drawn between half of and the whole of a length that doubles up to this."""
    backlog_per_second: float = 200.0
    """Records of the backlog; what is new goes first and is not held back."""


class Courier:
    """One spool, one sink, one thread that calls `step`."""

    def __init__(
        self, spool: Spool, sink: Sink, clock: Clock, random: Random, pace: DeliveryPace | None = None
    ) -> None:
        self.trouble: str | None = None
        """Why nothing is delivered now; None while the sink answers."""
        self._spool, self._sink, self._clock, self._random = spool, sink, clock, random
        self._pace = pace or DeliveryPace()
        self._failures = 0
        self._aside: dict[int, datetime] = {}
        """Numbers of entries that the sink takes another time, and when they are due again."""

    def step(self) -> float:
        """Deliver one batch, if there is one; returns the seconds to wait before the next step."""
        now = self._clock.now()
        self._aside = {one: due for one, due in self._aside.items() if timedelta(0) < due - now <= ASIDE}
        batch = self._spool.take(self._aside)
        if batch is None:
            return self._pace.idle_seconds
        try:
            answer = self._sink.deliver(batch.topic, batch.records)
            aside, refused = _sorted(batch, answer, now)
        except Away as away:
            return max(away.after * self._random.uniform(1.0, 1.5), self._pause(str(away)))
        self._spool.done(batch, now, refused=len(refused), aside=aside)
        for sentence in refused:
            structlog.get_logger().warning("record refused", why=sentence)
        if aside:
            self._put_aside(aside, answer.later[0].why)
        if len(aside) < len(batch.entries):
            self._answered()
        return len(batch.entries) / self._pace.backlog_per_second if batch.late else 0.0

    def _put_aside(self, aside: Mapping[int, datetime], why: str) -> None:
        if not self._aside:
            structlog.get_logger().warning("not taken now, the spool keeps it", why=why)
        self._aside |= aside
        self.trouble = why

    def _answered(self) -> None:
        if self._failures:
            structlog.get_logger().info("delivering again", after_failures=self._failures)
        self.trouble, self._failures = None, 0

    def _pause(self, why: str) -> float:
        if not self._failures:
            structlog.get_logger().warning("nothing is delivered, the spool keeps it", why=why)
        self.trouble = why
        length = min(
            self._pace.first_pause_seconds * 2.0 ** min(self._failures, 30), self._pace.longest_pause_seconds
        )
        self._failures += 1
        return length * self._random.uniform(0.5, 1.0)


def _sorted(
    batch: DeliveryBatch, answer: DeliveryResult, now: datetime
) -> tuple[dict[int, datetime], list[str]]:
    """Numbers of what stays aside, each with the time when it is due, and sentences of what will never be taken.

    Raises Away when the clocks are so far apart that all has to wait.
    """
    aside: dict[int, datetime] = {}
    refused = list(answer.refused)
    for one in answer.later:
        entry = batch.entries[one.place]
        if _dated(batch.topic, entry.record) > now + FUTURE:
            refused.append(f"{one.why}; the clock here was set back since, so when it was is not known")
        elif one.seconds > CLOCKS_APART:
            raise Away(one.why)
        else:
            aside[entry.number] = now + min(timedelta(seconds=max(one.seconds, 1.0)), ASIDE)
    return aside, refused


def _dated(topic: Topic, record: Record) -> datetime:
    """The latest time that an own record tells of."""
    if topic is Topic.READINGS:
        return decode(record.value, Reading).body.taken_at
    windows = decode(record.value, LatencyBatch).body.windows
    return max((one.window_start for one in windows), default=datetime.min.replace(tzinfo=UTC))
