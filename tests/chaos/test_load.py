"""The load generator: which readings are due at which time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from predrain.data.reading import Smart
from tests.chaos.load import LoadClock, LoadOrder, compose_due

ORDER = LoadOrder("load-0", drives=40, readings_per_second=10.0)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_each_reading_is_due_once_at_the_rate_of_the_order() -> None:
    clock = LoadClock(ORDER, 1_000.0, 0)
    taken = [number for tick in range(1, 51) for number in clock.take_due(1_000.0 + tick / 5, 0)]
    assert taken == list(range(100))


def test_a_process_that_stood_still_reads_what_became_due_meanwhile() -> None:
    clock = LoadClock(ORDER, 1_000.0, 0)
    assert clock.take_due(1_001.0, 0) == range(10)
    taken = [number for _ in range(6) for number in clock.take_due(1_021.0, 0)]
    assert taken == list(range(10, 210))


def test_nothing_is_read_while_a_minute_of_the_load_waits_to_be_delivered() -> None:
    clock = LoadClock(ORDER, 1_000.0, 0)
    assert clock.take_due(2_000.0, 600) == range(0)
    assert clock.take_due(2_000.0, 590) == range(10)


def test_readings_taken_at_one_time_are_of_different_drives() -> None:
    clock = LoadClock(ORDER, 1_000.0, 0)
    devices = [compose_due(ORDER, number, NOW).device for number in clock.take_due(2_000.0, 0)]
    assert len(devices) == len(set(devices)) == ORDER.drives


def test_a_process_that_was_killed_goes_on_with_the_first_that_its_spool_has_not() -> None:
    assert list(LoadClock(ORDER, 1_000.0, 98).take_due(1_010.2, 0)) == [98, 99, 100, 101]


def test_each_drive_is_read_in_turn_and_is_older_each_time() -> None:
    first, again = compose_due(ORDER, 7, NOW), compose_due(ORDER, 47, NOW + timedelta(seconds=4))
    assert first.device == again.device
    assert isinstance(first.seen, Smart)
    assert isinstance(again.seen, Smart)
    assert (again.seen.power_on_hours or 0) == (first.seen.power_on_hours or 0) + 1
    assert len({compose_due(ORDER, number, NOW).device for number in range(40)}) == 40
