"""The envelopes that this process sends, with its name and a sequence number that grows by one with each."""

from __future__ import annotations

import itertools
from typing import TypeVar

from predrain.data.clock import Clock
from predrain.data.latency_windows import LatencyBatch
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading
from predrain.data.wire import DeadLetter, StoreMark, encode_envelope

Body = TypeVar("Body", Reading, LatencyBatch, Outlook, DeadLetter, StoreMark)


class RecordSender:
    """Encodes envelopes. Thread-safe (a counter's `next` is one step of the interpreter)."""

    def __init__(self, producer: str, clock: Clock) -> None:
        self._producer, self._clock, self._sequence = producer, clock, itertools.count()

    def encode_envelope(self, body: Body) -> bytes:
        """Return `body` in an envelope. Raises InvalidValue."""
        sent_at, sequence = self._clock.now(), next(self._sequence)
        return encode_envelope(body, producer=self._producer, sequence=sequence, sent_at=sent_at)
