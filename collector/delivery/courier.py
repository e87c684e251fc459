"""Carries the spool to the sink: at once what is new, slowly what is left over, seldom while nobody answers."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import structlog

from collector.delivery.sink import Away, Sink
from collector.delivery.spool import Spool
from data.clock import Clock


@dataclass(frozen=True, slots=True)
class Pace:
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
        self, spool: Spool, sink: Sink, clock: Clock, random: Random, pace: Pace | None = None
    ) -> None:
        self.trouble: str | None = None
        """Why nothing is delivered now; None while the sink answers."""
        self._spool, self._sink, self._clock, self._random = spool, sink, clock, random
        self._pace = pace or Pace()
        self._failures = 0

    def step(self) -> float:
        """Deliver one batch, if there is one; returns the seconds to wait before the next step."""
        batch = self._spool.take()
        if batch is None:
            return self._pace.idle_seconds
        try:
            refused = self._sink.deliver(batch.topic, batch.records)
        except Away as away:
            return max(away.after * self._random.uniform(1.0, 1.5), self._pause(str(away)))
        self._spool.done(batch, self._clock.now(), refused=len(refused))
        for sentence in refused:
            structlog.get_logger().warning("record refused", why=sentence)
        if self.trouble is not None:
            structlog.get_logger().info("delivering again", after_failures=self._failures)
            self.trouble, self._failures = None, 0
        return len(batch.entries) / self._pace.backlog_per_second if batch.late else 0.0

    def _pause(self, why: str) -> float:
        if self.trouble is None:
            structlog.get_logger().warning("nothing is delivered, the spool keeps it", why=why)
        self.trouble = why
        length = min(
            self._pace.first_pause_seconds * 2.0 ** min(self._failures, 30), self._pace.longest_pause_seconds
        )
        self._failures += 1
        return length * self._random.uniform(0.5, 1.0)
