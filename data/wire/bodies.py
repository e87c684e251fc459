"""The JSON of each value that is sent or kept: one shape a kind, used by the wire and by the store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

import msgspec

from data.drain import Drain, JournalEntry
from data.ids import DeviceId, HostName
from data.log.port import Delivered, Topic
from data.outcome import Outcome
from data.outlook import Outlook
from data.reading import LatencySummary, Reading, Seat, Smart, Unreadable
from data.wire.shape import Misshapen, Shape

T = TypeVar("T")

LONGEST_DEAD = 1 << 20
"""Bytes of a record that its dead letter keeps."""
LONGEST_TOLD = 1_000
"""Characters of its key, and of the reason, that a dead letter keeps: whoever sent the record may have chosen them."""


class Body(Protocol[T]):
    """Values of one kind as bytes and back. Both raise Misshapen."""

    def write(self, value: T) -> bytes:
        """JSON of `value`."""
        ...

    def read(self, raw: bytes) -> T:
        """The value that `raw` holds."""
        ...


class Formed(Body[T], Protocol[T]):
    """A body that is decoded together with what stands around it."""

    @property
    def form(self) -> type[msgspec.Struct]:
        """What its JSON is decoded into."""
        ...

    def made(self, form: Any) -> T:
        """The value of a decoded form. Raises Misshapen, MsgspecError and OverflowError."""
        ...


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be taken, with the reason; it can be replayed once the reason is gone."""

    topic: Topic
    offset: int
    key: str
    at: datetime
    reason: str
    value: bytes
    whole: bool = True
    """False: the record was longer than LONGEST_DEAD and `value` is its beginning, or it was damaged in the log."""
    partition: int = 0

    @classmethod
    def of(cls, topic: Topic, delivered: Delivered, reason: object, at: datetime) -> DeadLetter:
        """The letter for a record of `topic` that was refused with `reason` (an error or a sentence)."""
        value = delivered.value[:LONGEST_DEAD]
        whole = len(value) == len(delivered.value) and not delivered.damage
        key, why = _legible(delivered.key), _legible(str(reason))
        return cls(topic, delivered.offset, key, at, why, value, whole, delivered.partition)


def _legible(text: str) -> str:
    """`text` as it can be written: not too long, without halves of characters."""
    kept = text if len(text) <= LONGEST_TOLD else f"{text[:LONGEST_TOLD]}.."
    return kept.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True, slots=True)
class _ReadingForm:
    """A Reading as it is written: exactly one of `smart` and `unreadable`."""

    device: DeviceId
    host: HostName
    taken_at: datetime
    received_at: datetime
    smart: Smart | None = None
    unreadable: Unreadable | None = None
    seats: tuple[Seat, ...] = ()
    kernel_errors: int | None = None


class _ReadingBody:
    def __init__(self) -> None:
        self._form = Shape(_ReadingForm, "Reading")

    @property
    def form(self) -> type[msgspec.Struct]:
        return self._form.form

    def write(self, value: Reading) -> bytes:
        seen = value.seen
        if not isinstance(seen, Smart | Unreadable):
            raise Misshapen(f"this Reading cannot be written: it saw a {type(seen).__name__}")
        smart, unreadable = (seen, None) if isinstance(seen, Smart) else (None, seen)
        return self._form.write(
            _ReadingForm(
                value.device,
                value.host,
                value.taken_at,
                value.received_at,
                smart,
                unreadable,
                value.seats,
                value.kernel_errors,
            )
        )

    def read(self, raw: bytes) -> Reading:
        return self._reading(self._form.read(raw))

    def made(self, form: Any) -> Reading:
        return self._reading(self._form.made(form))

    def _reading(self, form: _ReadingForm) -> Reading:
        seen: Smart | Unreadable
        if form.smart is not None and form.unreadable is None:
            seen = form.smart
        elif form.unreadable is not None and form.smart is None:
            seen = replace(form.unreadable, since=form.unreadable.since.astimezone(UTC))
        else:
            raise Misshapen(
                "these bytes are no Reading: exactly one of `smart` and `unreadable` must be there"
            )
        return Reading(
            form.device, form.host, form.taken_at, form.received_at, seen, form.seats, form.kernel_errors
        )


READING: Formed[Reading] = _ReadingBody()
LATENCY: Body[LatencySummary] = Shape(LatencySummary)
OUTLOOK: Body[Outlook] = Shape(Outlook)
DRAIN: Body[Drain] = Shape(Drain)
JOURNAL_ENTRY: Body[JournalEntry] = Shape(JournalEntry)
OUTCOME: Body[Outcome] = Shape(Outcome)
DEAD_LETTER: Body[DeadLetter] = Shape(DeadLetter)
