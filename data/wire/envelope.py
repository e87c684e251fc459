"""The versioned envelope around every value that leaves a process: strict on write, kind to older writers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from data.outlook import GRID_DAYS, Outlook
from data.reading import LatencySummary, Reading
from data.refusal import Refusal
from data.wire import bodies
from data.wire.bodies import Body, DeadLetter
from data.wire.shape import Misshapen

T = TypeVar("T", Reading, LatencySummary, Outlook, DeadLetter)

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


@dataclass(frozen=True, slots=True)
class _Schema:
    """A kind on the wire. A changed body is a new version; the reader of the old one stays for ever."""

    name: str
    version: int
    writer: Body[Any]
    readers: Mapping[int, Body[Any]]
    longest: int = LONGEST


_SCHEMAS: Mapping[type, _Schema] = {
    Reading: _Schema("reading", 1, bodies.READING, {1: bodies.READING}),
    LatencySummary: _Schema("latency", 1, bodies.LATENCY, {1: bodies.LATENCY}),
    Outlook: _Schema("outlook", 2, bodies.OUTLOOK, {1: bodies.OUTLOOK, 2: bodies.OUTLOOK}),
    DeadLetter: _Schema("dead_letter", 1, bodies.DEAD_LETTER, {1: bodies.DEAD_LETTER}, 2 * LONGEST),
}


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
        label = _LABEL.decode(raw)
        reader = _reader(schema, label)
        sealed = _SEALED.decode(raw)
        body: T = reader.read(bytes(sealed.body))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Poison(f"these bytes are no envelope: {error}") from error
    except Misshapen as error:
        raise Poison(str(error)) from error
    if fault := _fault(body):
        raise Poison(f"this {schema.name} cannot be true: {fault}")
    sent_at = sealed.sent_at.astimezone(UTC)
    return Envelope(schema.name, sealed.version, sealed.producer, sealed.sequence, sent_at, body)


def _reader(schema: _Schema, label: _Label) -> Body[Any]:
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
