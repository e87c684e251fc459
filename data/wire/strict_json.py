"""Converts a frozen dataclass to strict JSON and back: unknown, ill-typed and non-finite values are refused."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from predrain.data.outlook import SurvivalCurve
from predrain.data.refusal import Refusal
from predrain.data.setting import Setting, read_setting
from predrain.data.wire_names import find_wire_name

T = TypeVar("T")

_AWARE = Annotated[datetime, msgspec.Meta(tz=True)]
_FINITE = Annotated[
    float, msgspec.Meta(ge=-1.7e308, le=1.7e308)
]  # msgspec would write NaN as null: "unknown"

_POINTS = list[_FINITE]


class InvalidValue(Refusal):
    """A value is not allowed by its type, or bytes are no such value. The text says where."""


class JsonShape(Generic[T]):
    """The JSON of one frozen dataclass and of those inside it.

    Fields with their default value are not written, and missing fields are read as defaults, so that a reader of
    today understands a writer that knew fewer fields. A field that the dataclass lacks is refused on reading. Times
    are RFC 3339 with an offset and come back as UTC. Integers and settings that are keys of a mapping are strings, as
    JSON requires. `complete` fills in what older writers did not know from what they wrote.
    """

    def __init__(
        self, kind: type[T], name: str | None = None, *, complete: Callable[[T], T] | None = None
    ) -> None:
        self._kind, self._name, self._complete = kind, name or kind.__name__, complete
        self._struct = _struct_of(kind)
        self._decoder = msgspec.json.Decoder(self._struct, dec_hook=_read_special)
        self._encoder = msgspec.json.Encoder(enc_hook=_write_special)
        # msgspec builds its knowledge of a dataclass at the first use and shows it half-built to other
        # threads, which crash.
        msgspec.json.Decoder(kind)
        hints = typing.get_type_hints(kind)
        self._times = tuple(
            name for name, hint in hints.items() if datetime in (hint, *typing.get_args(hint))
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """Names on the wire, in order."""
        return self._struct.__struct_encode_fields__

    def write(self, value: T) -> bytes:
        """Return the JSON of `value`. Raises InvalidValue."""
        return self.write_form(self.build_form(value))

    def build_form(self, value: T) -> msgspec.Struct:
        """Return the checked form of `value`, which `write_form` writes. Raises InvalidValue."""
        try:
            return msgspec.convert(value, self._struct, from_attributes=True)
        except (msgspec.MsgspecError, OverflowError) as error:
            raise InvalidValue(f"this {self._name} cannot be written: {error}") from error

    def write_form(self, form: msgspec.Struct) -> bytes:
        """Return the JSON of a form. Raises InvalidValue."""
        try:
            return self._encoder.encode(form)
        except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError) as error:
            raise InvalidValue(f"this {self._name} cannot be written: {error}") from error

    @property
    def form(self) -> type[msgspec.Struct]:
        """The struct into which the JSON is decoded, for a caller that decodes the envelope in the same step."""
        return self._struct

    def read(self, raw: bytes | msgspec.Raw, **fields: Any) -> T:
        """Return the value that `raw` holds, with `fields` in place of those of `raw`. Raises InvalidValue."""
        try:
            form = self._decoder.decode(raw)
            return self.build_value(msgspec.structs.replace(form, **fields) if fields else form)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidValue(f"these bytes are no {self._name}: {error}") from error

    def build_value(self, form: Any) -> T:
        """Return the value of a decoded form. Raises MsgspecError, and OverflowError for a time that has no UTC."""
        value = msgspec.convert(form, self._kind, from_attributes=True)
        foreign = {
            name: time.astimezone(UTC)
            for name in self._times
            if (time := getattr(value, name)) is not None and time.tzinfo is not UTC
        }
        if foreign:
            value = dataclasses.replace(value, **foreign)  # type: ignore[type-var]
        return value if self._complete is None else self._complete(value)


def _read_special(kind: type, value: Any) -> Setting | SurvivalCurve:
    """Decode a type that msgspec does not know by itself. Raises ValueError."""
    if kind is Setting and isinstance(value, str):
        return read_setting(value)
    if kind is SurvivalCurve:
        return SurvivalCurve(msgspec.convert(value, _POINTS))
    raise NotImplementedError(kind)


def _write_special(value: object) -> str | list[float]:
    if isinstance(value, Setting):
        return str(value)
    if isinstance(value, SurvivalCurve):
        return list(value)
    raise NotImplementedError(type(value))


def _struct_of(kind: type) -> type[msgspec.Struct]:
    """Build the strict twin of a dataclass: same names, same defaults, nothing else allowed.

    The JSON has the name that a field's metadata gives (`name_on_wire`).
    """
    hints = typing.get_type_hints(kind)
    fields: list[tuple[str, Any, Any]] = []
    for field in dataclasses.fields(kind):
        strict, name = _to_strict_type(hints[field.name]), find_wire_name(field.name, field.metadata)
        if field.default is not dataclasses.MISSING:
            default = msgspec.field(default=field.default, name=name)
        elif field.default_factory is not dataclasses.MISSING:
            # A dataclass that is its own default has a twin that is, too.
            factory = strict if field.default_factory is hints[field.name] else field.default_factory
            default = msgspec.field(default_factory=factory, name=name)
        else:
            default = msgspec.field(name=name)
        fields.append((field.name, strict, default))
    return msgspec.defstruct(
        kind.__name__, fields, frozen=True, forbid_unknown_fields=True, omit_defaults=True
    )


def _to_strict_type(hint: Any) -> Any:
    """Return `hint` with dataclasses as strict structs, times as aware and floats as finite."""
    if hint is datetime:
        return _AWARE
    if hint is float:
        return _FINITE
    if isinstance(hint, typing.NewType):
        return _to_strict_type(hint.__supertype__)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _struct_of(hint)
    origin = typing.get_origin(hint)
    arguments = tuple(_to_strict_type(argument) for argument in typing.get_args(hint))
    if origin is None:
        return hint
    if origin in (typing.Union, types.UnionType):
        return typing.Union[arguments]  # noqa: UP007  # built at run time
    if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return types.GenericAlias(dict, arguments)
    return types.GenericAlias(origin, arguments)
