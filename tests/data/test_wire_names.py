"""A field keeps its name in JSON when its name in Python changes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from predrain.data.wire import InvalidValue
from predrain.data.wire.strict_json import JsonShape
from predrain.data.wire_names import name_on_wire


@dataclass(frozen=True)
class Inner:
    """A value inside another one."""

    kind: str = field(metadata=name_on_wire("wish"))


@dataclass(frozen=True)
class Outer:
    """A value with fields whose JSON has older names."""

    inner: Inner
    affected_pgs: tuple[str, ...] = field(default=(), metadata=name_on_wire("stirred"))
    number: int = 0


SHAPE = JsonShape(Outer)
VALUE = Outer(Inner("approve"), ("1.0",), 2)


def test_json_has_the_names_on_the_wire_and_is_read_by_them() -> None:
    raw = SHAPE.write(VALUE)
    assert raw == b'{"inner":{"wish":"approve"},"stirred":["1.0"],"number":2}'
    assert SHAPE.read(raw) == VALUE


def test_the_name_in_python_is_unknown_in_json() -> None:
    with pytest.raises(InvalidValue):
        SHAPE.read(b'{"inner":{"kind":"approve"}}')


def test_the_fields_of_a_shape_are_those_on_the_wire() -> None:
    assert SHAPE.fields == ("inner", "stirred", "number")
