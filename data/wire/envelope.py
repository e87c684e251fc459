"""The versioned envelope of every value that leaves a process: strict on writing, tolerant of older writers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from predrain.data.latency_windows import LatencyBatch, LatencySummary
from predrain.data.log.log_port import LONGEST
from predrain.data.outlook import GRID_DAYS, Outlook
from predrain.data.outside_text import PRODUCER, clean_identifier
from predrain.data.reading import Reading
from predrain.data.refusal import Refusal
from predrain.data.wire import wire_bodies
from predrain.data.wire.latency_wire import BY_COLUMNS, ONE_BY_ONE
from predrain.data.wire.strict_json import InvalidValue
from predrain.data.wire.wire_bodies import BodyCodec, BodyWithContext, DeadLetter, StoreMark

T = TypeVar("T", Reading, LatencySummary, LatencyBatch, Outlook, DeadLetter, StoreMark)

_ROUNDING = 1e-9


class UndecodableRecord(Refusal):
    """The bytes hold no value; they belong in a dead letter with this reason."""


@dataclass(frozen=True, slots=True)
class Envelope(Generic[T]):
    """A value with its sender. A producer's `sequence` grows by one with each envelope of a schema."""

    schema: str
    version: int
    producer: str
    sequence: int
    sent_at: datetime
    body: T


class _Label(msgspec.Struct, frozen=True):
    """The fields that must be known before anything else can be judged; other fields may be of a later version."""

    schema: str
    version: int


class _Sealed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: str
    version: int
    producer: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    sequence: Annotated[int, msgspec.Meta(ge=0)]
    sent_at: Annotated[datetime, msgspec.Meta(tz=True)]
    body: msgspec.Raw


_LABEL = msgspec.json.Decoder(_Label)
_SEALED = msgspec.json.Decoder(_Sealed)


class _AtOnce:
    """Decodes envelope and value in one step, for kinds with many values."""

    def __init__(self, body: BodyWithContext[Any]) -> None:
        self._body = body
        whole = msgspec.defstruct("_Whole", [("body", body.form)], bases=(_Sealed,), frozen=True)
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(whole)

    def decode(self, raw: bytes, schema: _Schema) -> tuple[_Sealed, Any] | None:
        """Return both, or None for anything wrong or older, which is then decoded piece by piece."""
        try:
            sealed = self._decoder.decode(raw)
            if sealed.schema == schema.name and schema.readers.get(sealed.version) is self._body:
                return sealed, self._body.build_value(sealed.body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError, InvalidValue):
            pass
        return None


@dataclass(frozen=True, slots=True)
class _Schema:
    """A kind on the wire. A changed body is a new version; the reader of the old one stays for ever."""

    name: str
    version: int
    writer: BodyCodec[Any]
    readers: Mapping[int, BodyCodec[Any]]
    longest: int = LONGEST
    at_once: _AtOnce | None = None


_SCHEMAS: Mapping[type, _Schema] = {
    Reading: _Schema(
        "reading",
        5,
        wire_bodies.READING,
        dict.fromkeys((1, 2, 3, 4, 5), wire_bodies.READING),
        at_once=_AtOnce(wire_bodies.READING),
    ),
    LatencySummary: _Schema("latency", 3, wire_bodies.LATENCY, dict.fromkeys((1, 2, 3), wire_bodies.LATENCY)),
    LatencyBatch: _Schema(
        "latency_batch",
        3,
        BY_COLUMNS,
        {1: ONE_BY_ONE, 2: BY_COLUMNS, 3: BY_COLUMNS},
        at_once=_AtOnce(BY_COLUMNS),
    ),
    Outlook: _Schema("outlook", 3, wire_bodies.OUTLOOK, dict.fromkeys((1, 2, 3), wire_bodies.OUTLOOK)),
    DeadLetter: _Schema(
        "dead_letter",
        2,
        wire_bodies.DEAD_LETTER,
        {1: wire_bodies.DEAD_LETTER, 2: wire_bodies.DEAD_LETTER},
        2 * LONGEST,
    ),
    StoreMark: _Schema("store_mark", 1, wire_bodies.STORE_MARK, {1: wire_bodies.STORE_MARK}),
}


def list_wire_versions() -> Mapping[str, int]:
    """Return the version of each schema that this predrain writes, by its name."""
    return {schema.name: schema.version for schema in _SCHEMAS.values()}


def encode_envelope(body: T, *, producer: str, sequence: int, sent_at: datetime) -> bytes:
    """Return one envelope as JSON. Raises InvalidValue if `body` breaks its invariants or is too long to send."""
    schema = _SCHEMAS[type(body)]
    if fault := _find_outlook_fault(body):
        raise InvalidValue(f"this {type(body).__name__} cannot be written: {fault}")
    sealed = _Sealed(
        schema.name, schema.version, producer, sequence, sent_at, msgspec.Raw(schema.writer.write(body))
    )
    raw = msgspec.json.encode(sealed)
    if len(raw) > schema.longest:
        raise InvalidValue(
            f"an envelope of {len(raw):,} bytes is longer than the {schema.longest:,} that may be sent"
        )
    return raw


def decode_envelope(raw: bytes, kind: type[T]) -> Envelope[T]:
    """Return the envelope of a `kind` that `raw` holds, of this version or any earlier one. Raises
    UndecodableRecord.
    """
    schema = _SCHEMAS[kind]
    if len(raw) > schema.longest:
        raise UndecodableRecord(
            f"{len(raw):,} bytes are longer than the {schema.longest:,} that an envelope may have"
        )
    try:
        body: T
        found = schema.at_once.decode(raw, schema) if schema.at_once else None
        if found is not None:
            sealed, body = found
        else:
            reader = _select_body_reader(schema, _LABEL.decode(raw))
            sealed = _SEALED.decode(raw)
            body = reader.read(bytes(sealed.body))
        sent_at = sealed.sent_at.astimezone(UTC)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UndecodableRecord(f"these bytes are no envelope: {error}") from error
    except InvalidValue as error:
        raise UndecodableRecord(str(error)) from error
    except OverflowError as error:
        raise UndecodableRecord("a time in it is at the end of the calendar and has no UTC") from error
    if fault := _find_outlook_fault(body):
        raise UndecodableRecord(f"this {schema.name} cannot be true: {fault}")
    producer = clean_identifier(sealed.producer, PRODUCER.limit)
    return Envelope(schema.name, sealed.version, producer, sealed.sequence, sent_at, body)


def _select_body_reader(schema: _Schema, label: _Label) -> BodyCodec[Any]:
    if label.schema != schema.name:
        raise InvalidValue(f"the envelope holds a {label.schema[:64]!r} where a {schema.name!r} belongs")
    if label.version > schema.version:
        raise InvalidValue(
            f"the envelope holds a {schema.name} of version {label.version} and this predrain reads up to"
            f" {schema.version}: update it, then replay the dead letters (predrain deadletter replay)"
        )
    if label.version not in schema.readers:
        raise InvalidValue(f"there never was a {schema.name} of version {label.version}")
    return schema.readers[label.version]


def _find_outlook_fault(body: object) -> str | None:
    """Return the fault of a well-typed body that breaks the invariants of data.outlook, or None."""
    if not isinstance(body, Outlook):
        return None
    chances = [p for p in (body.p_fail_7d, body.p_fail_14d, body.p_fail_30d) if p is not None]
    if any(not 0 <= p <= 1 for p in chances):
        return f"a probability is outside [0, 1]: {chances}"
    if any(later < earlier - _ROUNDING for earlier, later in pairwise(chances)):
        return f"the probability of failing falls with more days: {chances}"
    if body.rule_score is not None and not 0 <= body.rule_score <= 1:
        return f"a rule's score is outside [0, 1]: {body.rule_score:g}"
    curve = body.survival
    if curve is None:
        return None
    if len(curve) != len(GRID_DAYS):
        return f"the survival curve has {len(curve)} points where the grid has {len(GRID_DAYS)}"
    if abs(curve[0] - 1) > _ROUNDING or curve[-1] < -_ROUNDING:
        return f"the survival curve goes from {curve[0]:g} to {curve[-1]:g}, not from 1 towards 0"
    if any(later > earlier + _ROUNDING for earlier, later in pairwise(curve)):
        return "the survival curve rises"
    return None
