"""Where batches go: a log (Kafka, or the file of a service on this machine), or a service over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from predrain.data.log.port import Log, LogFull, Record, Topic
from predrain.data.refusal import Refusal


class Away(Refusal):
    """The sink takes nothing now; nothing is lost, and the same batch is sent again. The text says why."""

    def __init__(self, why: str, after: float = 0.0) -> None:
        super().__init__(why)
        self.after = after
        """Seconds that the sink asked us to stay away."""


@dataclass(frozen=True, slots=True)
class Later:
    """A record that was not taken and may be another time: the fault is a clock's or a token's, not the record's."""

    place: int
    why: str
    seconds: float
    """Until it would be taken as things stand."""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """What a sink did not take of what it was given."""

    refused: tuple[str, ...] = ()
    """A sentence for each record that it will never take."""
    later: tuple[Later, ...] = ()


class Sink(Protocol):
    """Takes batches. What was taken twice must have the effect of once: keys and bytes are the same."""

    def deliver(self, topic: Topic, records: Sequence[Record]) -> DeliveryResult:
        """Hand over `records`, in order; but for what the answer names they are safe there when it returns.

        Raises Away.
        """
        ...

    def close(self) -> None:
        """Let go of sockets."""
        ...


class LogSink:
    """A log, opened when something is first to be delivered: it may be down when the collector starts."""

    def __init__(self, open_log: Callable[[], Log]) -> None:
        self._open = open_log
        self._log: Log | None = None

    def deliver(self, topic: Topic, records: Sequence[Record]) -> DeliveryResult:
        """Append `records`; a log takes all that are envelopes. Raises Away."""
        try:
            if self._log is None:
                self._log = self._open()
            self._log.append(topic, records)
        except (LogFull, Refusal, OSError) as error:
            raise Away(str(error) or type(error).__name__) from error
        return DeliveryResult()

    def close(self) -> None:
        """Let go of the log."""
        if self._log is not None:
            self._log.close()
