"""A survival curve is packed, and otherwise a sequence of floats like any other."""

from __future__ import annotations

import sys

import pytest

from predrain.data.outlook import GRID_DAYS, Outlook, Status, SurvivalCurve
from predrain.data.wire import wire_bodies
from predrain.data.wire.strict_json import InvalidValue
from tests.data.store.written import DEVICE, NOON

POINTS = [1 / (1 + day * 0.0137) for day in GRID_DAYS]
CURVE = SurvivalCurve(POINTS)


def test_a_curve_gives_back_its_floats_bit_for_bit() -> None:
    assert list(CURVE) == POINTS
    assert [CURVE[place] for place in range(len(CURVE))] == POINTS
    assert (CURVE[-1], CURVE[1:3]) == (POINTS[-1], tuple(POINTS[1:3]))


def test_curves_of_the_same_floats_are_equal() -> None:
    assert SurvivalCurve(POINTS) == CURVE
    assert hash(SurvivalCurve(POINTS)) == hash(CURVE)
    assert SurvivalCurve([*POINTS[:-1], 0.0]) != CURVE


def test_a_curve_takes_eight_bytes_a_point_and_no_object_beside_it() -> None:
    held = [getattr(CURVE, name) for name in SurvivalCurve.__slots__]
    assert sys.getsizeof(CURVE) + sum(map(sys.getsizeof, held)) < 8 * len(POINTS) + 128


def test_a_curve_passes_the_wire_bit_for_bit() -> None:
    outlook = Outlook(DEVICE, NOON, Status.GOOD, "model:1", (), "", survival=CURVE)
    assert wire_bodies.OUTLOOK.read(wire_bodies.OUTLOOK.write(outlook)).survival == CURVE


@pytest.mark.parametrize("point", [b"true", b'"1"', b"null", b"1e400", b"{}"])
def test_a_point_that_is_no_finite_number_is_refused(point: bytes) -> None:
    outlook = Outlook(DEVICE, NOON, Status.GOOD, "model:1", (), "", survival=SurvivalCurve([0.25]))
    raw = wire_bodies.OUTLOOK.write(outlook)
    assert b"[0.25]" in raw
    with pytest.raises(InvalidValue):
        wire_bodies.OUTLOOK.read(raw.replace(b"0.25", point))
