"""A frozen dataclass as strict JSON and back: what is unknown, ill-typed or not finite is refused."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from predrain.data.refusal import Refusal
from predrain.data.setting import Setting, read_setting

T = TypeVar("T")

_AWARE = Annotated[datetime, msgspec.Meta(tz=True)]
_FINITE = Annotated[
    float, msgspec.Meta(ge=-1.7e308, le=1.7e308)
]  # msgspec would write NaN as null: "unknown"


class Misshapen(Refusal):
    """A value that its vocabulary does not allow, or bytes that are not such a value. The text says where."""


class JsonShape(Generic[T]):
    """The JSON of one frozen dataclass and of those inside it.

    Written without the fields that have their default; read with those defaults, so that a reader of today
    understands a writer who knew fewer fields. A field that the dataclass lacks is refused on reading. Times
    are RFC 3339 with an offset and come back as UTC. Integers and settings that are keys of a mapping are strings, as
    JSON must.
    """

    def __init__(self, kind: type[T], name: str | None = None) -> None:
        self._kind, self._name = kind, name or kind.__name__
        self._struct = _struct_of(kind)
        self._decoder = msgspec.json.Decoder(self._struct, dec_hook=_read_text)
        self._encoder = msgspec.json.Encoder(enc_hook=_write_text)
        # msgspec learns a dataclass at its first use and shows other threads what it has half learnt: they crash.
        msgspec.json.Decoder(kind)
        hints = typing.get_type_hints(kind)
        self._times = tuple(
            name for name, hint in hints.items() if datetime in (hint, *typing.get_args(hint))
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """Names on the wire, in order."""
        return self._struct.__struct_fields__

    def write(self, value: T) -> bytes:
        """JSON of `value`. Raises Misshapen."""
        try:
            return self._encoder.encode(msgspec.convert(value, self._struct, from_attributes=True))
        except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError) as error:
            raise Misshapen(f"this {self._name} cannot be written: {error}") from error

    @property
    def form(self) -> type[msgspec.Struct]:
        """What the JSON is decoded into, by whoever decodes more than it in one go."""
        return self._struct

    def read(self, raw: bytes | msgspec.Raw) -> T:
        """The value that `raw` holds. Raises Misshapen."""
        try:
            return self.made(self._decoder.decode(raw))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Misshapen(f"these bytes are no {self._name}: {error}") from error

    def made(self, form: Any) -> T:
        """The value of a decoded form. Raises MsgspecError, and OverflowError for a time that has no UTC."""
        return self._in_utc(msgspec.convert(form, self._kind, from_attributes=True))

    def _in_utc(self, value: T) -> T:
        foreign = {
            name: time.astimezone(UTC)
            for name in self._times
            if (time := getattr(value, name)) is not None and time.tzinfo is not UTC
        }
        return dataclasses.replace(value, **foreign) if foreign else value  # type: ignore[type-var]


def _read_text(kind: type, text: Any) -> Setting:
    """What msgspec does not know by itself. Raises ValueError."""
    if kind is Setting and isinstance(text, str):
        return read_setting(text)
    raise NotImplementedError(kind)


def _write_text(value: object) -> str:
    if isinstance(value, Setting):
        return str(value)
    raise NotImplementedError(type(value))


def _struct_of(kind: type) -> type[msgspec.Struct]:
    """The strict twin of a dataclass: same names, same defaults, nothing else allowed."""
    hints = typing.get_type_hints(kind)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for field in dataclasses.fields(kind):
        strict = _strict(hints[field.name])
        if field.default is not dataclasses.MISSING:
            fields.append((field.name, strict, field.default))
        elif field.default_factory is not dataclasses.MISSING:
            # A dataclass that makes itself by default has a twin that does.
            factory = strict if field.default_factory is hints[field.name] else field.default_factory
            fields.append((field.name, strict, msgspec.field(default_factory=factory)))
        else:
            fields.append((field.name, strict))
    return msgspec.defstruct(
        kind.__name__, fields, frozen=True, forbid_unknown_fields=True, omit_defaults=True
    )


def _strict(hint: Any) -> Any:
    """`hint` with dataclasses as strict structs, times as aware and floats as finite."""
    if hint is datetime:
        return _AWARE
    if hint is float:
        return _FINITE
    if isinstance(hint, typing.NewType):
        return _strict(hint.__supertype__)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _struct_of(hint)
    origin = typing.get_origin(hint)
    arguments = tuple(_strict(argument) for argument in typing.get_args(hint))
    if origin is None:
        return hint
    if origin in (typing.Union, types.UnionType):
        return typing.Union[arguments]  # noqa: UP007  # built at run time
    if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return types.GenericAlias(dict, arguments)
    return types.GenericAlias(origin, arguments)
