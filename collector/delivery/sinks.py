"""Sinks, which take batches: a log (Kafka, or the file of a service on this machine), or a service over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from predrain.data.log.log_port import Log, LogFull, Record, Topic
from predrain.data.refusal import Refusal


class SinkUnavailable(Refusal):
    """The sink takes nothing now. Nothing is lost, and the same batch is sent again. The text says why."""

    def __init__(self, why: str, after: float = 0.0) -> None:
        super().__init__(why)
        self.after = after
        """Seconds that the sink asked the collector to wait."""


@dataclass(frozen=True, slots=True)
class DeferredRecord:
    """A record that was not taken and may be later: the fault lies with a clock or a token, not with the record."""

    place: int
    why: str
    seconds: float
    """Seconds until the sink would take the record as things stand."""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The records of a batch that a sink did not take."""

    refused: tuple[str, ...] = ()
    """One sentence for each record that the sink will never take."""
    later: tuple[DeferredRecord, ...] = ()


class Sink(Protocol):
    """Takes batches. A record that is delivered twice must have the effect of one: its key and bytes are the same."""

    def deliver(self, topic: Topic, records: Sequence[Record]) -> DeliveryResult:
        """Deliver `records` in order. Those that the result does not name are safe in the sink when it returns.

        Raises SinkUnavailable.
        """
        ...

    def close(self) -> None:
        """Close the sockets."""
        ...


class LogSink:
    """A log, opened at the first delivery, because it may be down when the collector starts."""

    def __init__(self, open_log: Callable[[], Log]) -> None:
        self._open = open_log
        self._log: Log | None = None

    def deliver(self, topic: Topic, records: Sequence[Record]) -> DeliveryResult:
        """Append `records`; a log takes every envelope. Raises SinkUnavailable."""
        try:
            if self._log is None:
                self._log = self._open()
            self._log.append(topic, records)
        except (LogFull, Refusal, OSError) as error:
            raise SinkUnavailable(str(error) or type(error).__name__) from error
        return DeliveryResult()

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()
