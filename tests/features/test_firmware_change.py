"""A drive that counts otherwise after a change of firmware: the step is no rise, and what came before is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.reading import Reading, Smart
from predrain.features import (
    DriveState,
    compute_state_vector,
    observe_reading,
    pack_drive_state,
    unpack_drive_state,
)
from predrain.features.drive_history_rows import COUNTERS
from predrain.features.feature_schema import NAMES_IN_ORDER
from tests.features.test_stream import reading

OLD, NEW = "SN03", "SN04"
COUNT = st.integers(0, 60_000)


def with_firmware(one: Reading, firmware: str | None, **counts: int) -> Reading:
    """The reading as a drive with this firmware gives it, with decoded counters beside the attributes."""
    assert isinstance(one.seen, Smart)
    identity = replace(one.seen.identity, firmware=firmware)
    return replace(
        one, seen=replace(one.seen, identity=identity, counters=replace(one.seen.counters, **counts))
    )


def watch(*life: tuple[int, int, str | None], hour: int = 12) -> DriveState:
    """A drive's state after (day, pending sectors, firmware)."""
    state: DriveState | None = None
    for number, (day, pending, firmware) in enumerate(life):
        one = with_firmware(
            reading(day, {197: pending, 9: 1000 + number}, hour + number % 2), firmware, pending=pending
        )
        state = observe_reading(state, one)
    assert state is not None
    return state


def measure(state: DriveState, name: str) -> float:
    return float(compute_state_vector(state, state.day)[NAMES_IN_ORDER.index(name)])


def test_a_count_that_steps_up_with_a_new_firmware_has_not_risen() -> None:
    state = watch((100, 0, OLD), (101, 0, OLD), (102, 4096, NEW))
    assert measure(state, "smart_197") == 4096
    assert measure(state, "smart_197_up_7d") == 0
    assert measure(state, "smart_197_net_30d") == 0
    assert state.changes["pending"] == ((102, 4096),)


def test_a_count_that_rises_under_the_new_firmware_has_risen() -> None:
    state = watch((100, 0, OLD), (102, 4096, NEW), (103, 4104, NEW))
    assert measure(state, "smart_197_up_7d") == 8
    assert state.changes["pending"] == ((102, 4096), (103, 4104))


def test_a_rise_before_the_new_firmware_is_not_forgotten() -> None:
    state = watch((100, 0, OLD), (101, 16, OLD), (102, 16, NEW))
    assert measure(state, "smart_197_up_7d") == 16
    assert state.changes["pending"] == ((100, 0), (101, 16))


def test_when_a_count_rose_is_told_though_the_firmware_was_changed_on_that_day() -> None:
    state = watch((100, 0, OLD), (101, 16, OLD))
    same = with_firmware(reading(101, {197: 16, 9: 1002}, hour=20), NEW, pending=16)
    assert observe_reading(state, same).changes["pending"] == ((100, 0), (101, 16))


def test_a_rise_of_the_same_day_is_not_forgotten_with_the_new_firmware() -> None:
    state = watch((100, 0, OLD), (101, 16, OLD))
    later = with_firmware(reading(101, {197: 4096, 9: 1002}, hour=20), NEW)
    state = observe_reading(state, later)
    assert measure(state, "smart_197_up_7d") == 16
    last = with_firmware(reading(101, {197: 4100, 9: 1003}, hour=22), NEW)
    assert measure(observe_reading(state, last), "smart_197_up_7d") == 20


def test_the_day_after_the_new_firmware_counts_from_it() -> None:
    state = watch((100, 0, OLD), (101, 0, OLD), (101, 4096, NEW), (102, 4096, NEW))
    assert measure(state, "smart_197_up_7d") == 0


@pytest.mark.parametrize("told", [(None, NEW), (OLD, None), (OLD, OLD)])
def test_a_firmware_that_is_not_told_is_no_other_firmware(told: tuple[str | None, str | None]) -> None:
    before, after = told
    assert measure(watch((100, 0, before), (101, 8, after)), "smart_197_up_7d") == 8


@given(st.lists(COUNT, min_size=1, max_size=6), COUNT)
def test_a_new_firmware_adds_no_rise_for_any_counts(counts: list[int], after: int) -> None:
    days = list(enumerate(counts, start=100))
    before = watch(*((day, count, OLD) for day, count in days))
    changed = observe_reading(before, with_firmware(reading(100 + len(counts), {197: after}, 12), NEW))
    for n in COUNTERS:
        name = f"smart_{n}_up_30d"
        told, same = measure(changed, name), measure(before, name)
        assert told == same or (told != told and same != same)


def test_the_firmware_is_remembered_in_a_packed_state() -> None:
    state = unpack_drive_state(pack_drive_state(watch((100, 0, OLD), (101, 0, OLD))))
    assert state is not None
    after = observe_reading(state, with_firmware(reading(102, {197: 4096, 9: 1003}), NEW))
    assert measure(after, "smart_197_up_7d") == 0
