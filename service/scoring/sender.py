"""Envelopes that this process sends: its name and a sequence that grows by one with each."""

from __future__ import annotations

import itertools
from typing import TypeVar

from predrain.data.clock import Clock
from predrain.data.outlook import Outlook
from predrain.data.reading import LatencyBatch, Reading
from predrain.data.wire import DeadLetter, StoreMark, encode

Body = TypeVar("Body", Reading, LatencyBatch, Outlook, DeadLetter, StoreMark)


class Sender:
    """Thread-safe (a counter's `next` is one step of the interpreter)."""

    def __init__(self, producer: str, clock: Clock) -> None:
        self._producer, self._clock, self._sequence = producer, clock, itertools.count()

    def seal(self, body: Body) -> bytes:
        """`body` in an envelope. Raises data.wire.Misshapen."""
        sent_at, sequence = self._clock.now(), next(self._sequence)
        return encode(body, producer=self._producer, sequence=sequence, sent_at=sent_at)
