"""The JSON of each value that is sent or stored: one shape for each kind, used by the wire and by the store."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from sys import intern
from typing import Any, Protocol, TypeVar

import msgspec

from predrain.data.attribute_table import SharedAttributes
from predrain.data.cluster_event import ClusterEvent
from predrain.data.drain import Drain, JournalEntry
from predrain.data.ids import DeviceId, HostName
from predrain.data.latency_windows import LatencySummary
from predrain.data.life_cycle import LifeChange
from predrain.data.log.log_port import Delivered, Topic
from predrain.data.older_documents import add_event_to_older_line, type_older_plan
from predrain.data.outcome import Outcome
from predrain.data.outlook import Outlook
from predrain.data.outside_text import DEAD_LETTER_TEXT, clean_identifier, clean_text
from predrain.data.reading import OsdDevice, Reading, Smart, Unreadable
from predrain.data.unreadable import UnreadableCause, cause_of_older_sentence
from predrain.data.wire.strict_json import InvalidValue, JsonShape

T = TypeVar("T")

LONGEST_DEAD = 1 << 20
"""Most bytes of a record that its dead letter keeps."""
_TEXTS_OF_MODEL = ("vendor", "model", "family", "firmware")
"""The fields of an identity in which drives of one model are equal."""


class BodyCodec(Protocol[T]):
    """Converts values of one kind to bytes and back. Both methods raise InvalidValue."""

    def write(self, value: T) -> bytes:
        """Return the JSON of `value`."""
        ...

    def read(self, raw: bytes) -> T:
        """Return the value that `raw` holds."""
        ...


class BodyWithContext(BodyCodec[T], Protocol[T]):
    """A body that is decoded together with its envelope."""

    @property
    def form(self) -> type[msgspec.Struct]:
        """The struct into which the JSON is decoded."""
        ...

    def build_value(self, form: Any) -> T:
        """Return the value of a decoded form. Raises InvalidValue, MsgspecError and OverflowError."""
        ...


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be accepted, with the reason; it can be replayed once the reason is gone."""

    topic: Topic
    offset: int
    key: str
    at: datetime
    reason: str
    value: bytes
    whole: bool = True
    """False if the record was longer than LONGEST_DEAD and `value` is its beginning, or if it was damaged in the
    log."""
    partition: int = 0

    @classmethod
    def from_delivered(cls, topic: Topic, delivered: Delivered, reason: object, at: datetime) -> DeadLetter:
        """Build the letter for a record of `topic` that was refused with `reason` (an error or a sentence)."""
        value = delivered.value[:LONGEST_DEAD]
        whole = len(value) == len(delivered.value) and not delivered.damage
        # The sender of the record may have chosen its key, and words of the reason.
        key = clean_identifier(delivered.key, DEAD_LETTER_TEXT.limit)
        why = clean_text(str(reason), DEAD_LETTER_TEXT.limit)
        return cls(topic, delivered.offset, key, at, why, value, whole, delivered.partition)


@dataclass(frozen=True, slots=True)
class AuditEnd:
    """The last line of the audit when a mark was written: its number in the store, and its hash in the chain, in hex.

    `noted_at`: when the log first noted that line.
    """

    number: int
    hash: str
    noted_at: datetime


@dataclass(frozen=True, slots=True)
class StoreMark:
    """A record in the log that names the store of the log's content: `store` is the identity created with the store.

    `audit`: the end of the store's audit at that time; None if it had no line.
    """

    store: str
    audit: AuditEnd | None = None


@dataclass(frozen=True, slots=True)
class _UnreadableForm:
    """An Unreadable as it is written. Senders and stores of version 0.1.0 name no cause."""

    since: datetime
    why: str
    cause: UnreadableCause | None = None


@dataclass(frozen=True, slots=True)
class _ReadingForm:
    """A Reading as it is written, with exactly one of `smart` and `unreadable`."""

    device: DeviceId
    host: HostName
    taken_at: datetime
    received_at: datetime
    smart: Smart | None = None
    unreadable: _UnreadableForm | None = None
    seats: tuple[OsdDevice, ...] = ()
    kernel_errors: int | None = None


_ATTRIBUTES = SharedAttributes()


def _share_values(seen: Smart) -> None:
    """Share what a report has in common with others. It was just decoded, so that nobody else has it yet."""
    if isinstance(seen.attributes, dict):
        object.__setattr__(seen, "attributes", _ATTRIBUTES.share_attributes(seen.attributes))
    for name in _TEXTS_OF_MODEL:
        text = getattr(seen.identity, name)
        if text is not None:
            object.__setattr__(seen.identity, name, intern(text))


class _ReadingBody:
    def __init__(self) -> None:
        self._form = JsonShape(_ReadingForm, "Reading")

    @property
    def form(self) -> type[msgspec.Struct]:
        return self._form.form

    def write(self, value: Reading) -> bytes:
        seen = value.seen
        if not isinstance(seen, Smart | Unreadable):
            raise InvalidValue(f"this Reading cannot be written: it saw a {type(seen).__name__}")
        smart = seen if isinstance(seen, Smart) else None
        unreadable = None if isinstance(seen, Smart) else _UnreadableForm(seen.since, seen.why, seen.cause)
        return self._form.write(
            _ReadingForm(
                value.device,
                value.host,
                value.taken_at,
                value.received_at,
                smart,
                unreadable,
                value.osd_devices,
                value.kernel_errors,
            )
        )

    def read(self, raw: bytes) -> Reading:
        return self._reading(self._form.read(raw))

    def build_value(self, form: Any) -> Reading:
        if form.smart is None or form.unreadable is not None:
            return self._reading(self._form.build_value(form))
        # The usual case in one conversion: only the report differs from its form.
        seen = msgspec.convert(form.smart, Smart, from_attributes=True)
        _share_values(seen)
        return Reading(
            DeviceId(intern(form.device)),
            HostName(intern(form.host)),
            form.taken_at.astimezone(UTC),
            form.received_at.astimezone(UTC),
            seen,
            msgspec.convert(form.seats, tuple[OsdDevice, ...], from_attributes=True),
            form.kernel_errors,
        )

    def _reading(self, form: _ReadingForm) -> Reading:
        seen: Smart | Unreadable
        if form.smart is not None and form.unreadable is None:
            seen = form.smart
            _share_values(seen)
        elif form.unreadable is not None and form.smart is None:
            told = form.unreadable
            cause = cause_of_older_sentence(told.why) if told.cause is None else told.cause
            seen = Unreadable(told.since.astimezone(UTC), told.why, cause)
        else:
            raise InvalidValue(
                "these bytes are no Reading: exactly one of `smart` and `unreadable` must be there"
            )
        device, host = DeviceId(intern(form.device)), HostName(intern(form.host))
        return Reading(device, host, form.taken_at, form.received_at, seen, form.seats, form.kernel_errors)


class _DrainBody:
    def __init__(self) -> None:
        self._form = JsonShape(Drain)

    def write(self, value: Drain) -> bytes:
        return self._form.write(value)

    def read(self, raw: bytes) -> Drain:
        try:
            return self._form.read(raw)
        except InvalidValue:
            return self._form.read(type_older_plan(raw))


READING: BodyWithContext[Reading] = _ReadingBody()
LATENCY: BodyCodec[LatencySummary] = JsonShape(LatencySummary)
OUTLOOK: JsonShape[Outlook] = JsonShape(Outlook)
DRAIN: BodyCodec[Drain] = _DrainBody()
JOURNAL_ENTRY: BodyCodec[JournalEntry] = JsonShape(JournalEntry, complete=add_event_to_older_line)
OUTCOME: BodyCodec[Outcome] = JsonShape(Outcome)
LIFE_CHANGE: BodyCodec[LifeChange] = JsonShape(LifeChange)
CLUSTER_EVENT: BodyCodec[ClusterEvent] = JsonShape(ClusterEvent)
DEAD_LETTER: BodyCodec[DeadLetter] = JsonShape(DeadLetter)
STORE_MARK: BodyCodec[StoreMark] = JsonShape(StoreMark)
