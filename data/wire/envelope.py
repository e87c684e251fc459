"""The versioned envelope around every value that leaves a process: strict on write, kind to older writers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from predrain.data.outlook import GRID_DAYS, Outlook
from predrain.data.outside_text import PRODUCER, clean_identifier
from predrain.data.reading import LatencyBatch, LatencySummary, Reading
from predrain.data.refusal import Refusal
from predrain.data.wire import bodies
from predrain.data.wire.bodies import BodyCodec, DeadLetter, Formed, StoreMark
from predrain.data.wire.shape import Misshapen
from predrain.data.wire.windows import BY_COLUMNS, ONE_BY_ONE

T = TypeVar("T", Reading, LatencySummary, LatencyBatch, Outlook, DeadLetter, StoreMark)

LONGEST = 1 << 20
"""Bytes of an envelope; a dead letter may have twice that, since it holds another envelope in base 64."""

_ROUNDING = 1e-9


class Poison(Refusal):
    """Bytes that no value can be made of; they belong in a dead letter with this reason."""


@dataclass(frozen=True, slots=True)
class Envelope(Generic[T]):
    """A value with who sent it. A producer's `sequence` grows by one with each envelope of a schema."""

    schema: str
    version: int
    producer: str
    sequence: int
    sent_at: datetime
    body: T


class _Label(msgspec.Struct, frozen=True):
    """What must be known before anything else can be judged; other fields may be of a later time."""

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
    """Envelope and value decoded in one go, for values that are many."""

    def __init__(self, body: Formed[Any]) -> None:
        self._body = body
        whole = msgspec.defstruct("_Whole", [("body", body.form)], bases=(_Sealed,), frozen=True)
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(whole)

    def decode(self, raw: bytes, schema: _Schema) -> tuple[_Sealed, Any] | None:
        """Both; None where anything is amiss or older: look at it piece by piece then."""
        try:
            sealed = self._decoder.decode(raw)
            if sealed.schema == schema.name and schema.readers.get(sealed.version) is self._body:
                return sealed, self._body.made(sealed.body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError, Misshapen):
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
        3,
        bodies.READING,
        dict.fromkeys((1, 2, 3), bodies.READING),
        at_once=_AtOnce(bodies.READING),
    ),
    LatencySummary: _Schema("latency", 2, bodies.LATENCY, {1: bodies.LATENCY, 2: bodies.LATENCY}),
    LatencyBatch: _Schema(
        "latency_batch", 2, BY_COLUMNS, {1: ONE_BY_ONE, 2: BY_COLUMNS}, at_once=_AtOnce(BY_COLUMNS)
    ),
    Outlook: _Schema("outlook", 3, bodies.OUTLOOK, dict.fromkeys((1, 2, 3), bodies.OUTLOOK)),
    DeadLetter: _Schema(
        "dead_letter", 2, bodies.DEAD_LETTER, {1: bodies.DEAD_LETTER, 2: bodies.DEAD_LETTER}, 2 * LONGEST
    ),
    StoreMark: _Schema("store_mark", 1, bodies.STORE_MARK, {1: bodies.STORE_MARK}),
}


def encode(body: T, *, producer: str, sequence: int, sent_at: datetime) -> bytes:
    """One envelope as JSON. Raises Misshapen when `body` breaks its vocabulary or is too long to send."""
    schema = _SCHEMAS[type(body)]
    if fault := _fault(body):
        raise Misshapen(f"this {type(body).__name__} cannot be written: {fault}")
    sealed = _Sealed(
        schema.name, schema.version, producer, sequence, sent_at, msgspec.Raw(schema.writer.write(body))
    )
    raw = msgspec.json.encode(sealed)
    if len(raw) > schema.longest:
        raise Misshapen(
            f"an envelope of {len(raw):,} bytes is longer than the {schema.longest:,} that may be sent"
        )
    return raw


def decode(raw: bytes, kind: type[T]) -> Envelope[T]:
    """The envelope of a `kind` that `raw` holds, of this version or any earlier one. Raises Poison."""
    schema = _SCHEMAS[kind]
    if len(raw) > schema.longest:
        raise Poison(f"{len(raw):,} bytes are longer than the {schema.longest:,} that an envelope may have")
    try:
        body: T
        found = schema.at_once.decode(raw, schema) if schema.at_once else None
        if found is not None:
            sealed, body = found
        else:
            reader = _reader(schema, _LABEL.decode(raw))
            sealed = _SEALED.decode(raw)
            body = reader.read(bytes(sealed.body))
        sent_at = sealed.sent_at.astimezone(UTC)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Poison(f"these bytes are no envelope: {error}") from error
    except Misshapen as error:
        raise Poison(str(error)) from error
    except OverflowError as error:
        raise Poison("a time in it is at the end of the calendar and has no UTC") from error
    if fault := _fault(body):
        raise Poison(f"this {schema.name} cannot be true: {fault}")
    producer = clean_identifier(sealed.producer, PRODUCER.limit)
    return Envelope(schema.name, sealed.version, producer, sealed.sequence, sent_at, body)


def _reader(schema: _Schema, label: _Label) -> BodyCodec[Any]:
    if label.schema != schema.name:
        raise Misshapen(f"the envelope holds a {label.schema[:64]!r} where a {schema.name!r} belongs")
    if label.version > schema.version:
        raise Misshapen(
            f"the envelope holds a {schema.name} of version {label.version} and this predrain reads up to"
            f" {schema.version}: update it, then replay the dead letters (predrain deadletter replay)"
        )
    if label.version not in schema.readers:
        raise Misshapen(f"there never was a {schema.name} of version {label.version}")
    return schema.readers[label.version]


def _fault(body: object) -> str | None:
    """What makes a well-typed body untrue; the invariants of data.outlook."""
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
