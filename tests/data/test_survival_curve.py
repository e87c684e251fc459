"""A survival curve is packed, and otherwise a sequence of floats like any other."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.outlook import GRID_DAYS, Outlook, Status, SurvivalCurve
from predrain.data.wire import wire_bodies
from predrain.data.wire.strict_json import InvalidValue
from tests.data.store.written import DEVICE, NOON

POINTS = [1 / (1 + day * 0.0137) for day in GRID_DAYS]
CURVE = SurvivalCurve(POINTS)


@given(st.lists(st.floats(0, 1), min_size=1))
def test_a_curve_gives_back_seven_digits_of_each_chance_to_have_failed(points: list[float]) -> None:
    for point, given_back in zip(points, SurvivalCurve(points), strict=True):
        assert given_back == pytest.approx(point, abs=6e-8 * (1 - point) + 2e-16)


@given(st.lists(st.floats(0, 1), min_size=1))
def test_a_curve_of_a_curves_points_is_equal_to_it_bit_for_bit(points: list[float]) -> None:
    curve = SurvivalCurve(points)
    assert SurvivalCurve(curve) == curve
    assert list(SurvivalCurve(curve)) == list(curve)


@given(st.lists(st.floats(0, 1), min_size=1))
def test_a_curve_of_falling_points_falls(points: list[float]) -> None:
    curve = list(SurvivalCurve(sorted(points, reverse=True)))
    assert curve == sorted(curve, reverse=True)


def test_a_point_and_a_slice_of_a_curve_are_those_of_its_list() -> None:
    points = list(CURVE)
    assert [CURVE[place] for place in range(len(CURVE))] == points
    assert (CURVE[-1], CURVE[1:3]) == (points[-1], tuple(points[1:3]))


def test_a_curve_of_packed_chances_is_the_curve_of_its_points() -> None:
    failed = np.asarray([1 - point for point in POINTS], dtype=np.float32)
    assert SurvivalCurve.from_failure_chances(failed.tobytes()) == CURVE


def test_curves_of_the_same_floats_are_equal() -> None:
    assert SurvivalCurve(POINTS) == CURVE
    assert hash(SurvivalCurve(POINTS)) == hash(CURVE)
    assert SurvivalCurve([*POINTS[:-1], 0.0]) != CURVE


def test_a_curve_takes_four_bytes_a_point_and_no_object_beside_it() -> None:
    held = [getattr(CURVE, name) for name in SurvivalCurve.__slots__]
    assert sys.getsizeof(CURVE) + sum(map(sys.getsizeof, held)) < 4 * len(POINTS) + 128


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
