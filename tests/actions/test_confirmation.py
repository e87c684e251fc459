"""Which readings bear out that a drain pays."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.core.drain_cost import ChanceCurve, DiskAtRisk
from predrain.actions.core.forecast_confirmation import ForecastPoint, WeighedDisk, is_sound, weigh_disk
from predrain.actions.core.forecast_history import ForecastHistory
from predrain.data.ids import HostName
from predrain.data.reading import Attribute, Reading, Smart, Unreadable
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from tests.actions.made import HOST, NOW, POLICY, a_reading, bad_outlook, device, keep_history

TB = 10**12
HOUR = timedelta(hours=1)
STRONG, WEAK, NONE = 0.999, 0.105, 0.01


def point(hours_ago: float, within_30d: float = STRONG, **changes: object) -> ForecastPoint:
    """A sound reading of one host with a steady risk."""
    told = ForecastPoint(NOW - hours_ago * HOUR, HOST, ChanceCurve.of_month(within_30d), sound=True)
    return replace(told, **changes)  # type: ignore[arg-type]


def judged(*points: ForecastPoint) -> WeighedDisk:
    """A disk of 100 GB, by its forecasts, oldest first."""
    newest = points[-1].chances
    assert newest is not None
    return weigh_disk(DiskAtRisk(newest, TB // 10, 40e6), points, hours_max=24.0)


def test_one_reading_confirms_nothing() -> None:
    assert not judged(point(0, 1.0)).confirmed


def test_a_second_reading_less_than_five_minutes_later_confirms_nothing() -> None:
    assert not judged(point(4 / 60, 1.0), point(0, 1.0)).confirmed
    assert judged(point(6 / 60, 1.0), point(0, 1.0)).confirmed


def test_weak_evidence_must_last_a_day_and_strong_evidence_less_than_an_hour() -> None:
    assert judged(point(1), point(0)).confirmed
    assert not judged(point(20, WEAK), point(0, WEAK)).confirmed
    assert judged(point(24, WEAK), point(0, WEAK)).confirmed


def test_weak_evidence_of_long_ago_does_not_confirm_strong_evidence_of_one_reading() -> None:
    told = judged(point(10, WEAK), point(0))
    assert (told.readings, told.confirmed) == (2, False)


def test_a_reading_by_which_a_drain_does_not_pay_begins_the_count_anew() -> None:
    told = judged(point(30), point(2, NONE), point(0))
    assert (told.readings, told.confirmed, told.paying_since) == (1, False, NOW)


def test_a_reading_of_another_host_confirms_nothing() -> None:
    assert not judged(point(2, host=HostName("stor-02")), point(0)).confirmed


def test_a_reading_whose_host_is_not_known_confirms_nothing() -> None:
    assert not judged(point(2, host=None, sound=False), point(0, host=None, sound=False)).confirmed


def test_a_reading_that_is_not_sound_is_passed_over_and_the_newest_must_be_sound() -> None:
    assert judged(point(2), point(1, sound=False), point(0)).confirmed
    assert not judged(point(1, sound=False), point(0)).confirmed
    assert not judged(point(2), point(1), point(0, sound=False)).confirmed


@given(
    st.lists(
        st.tuples(st.floats(0, 40), st.sampled_from([NONE, WEAK, 0.3, STRONG]), st.booleans()), min_size=1
    )
)
def test_a_drain_is_never_confirmed_without_two_sound_readings_five_minutes_apart(
    told: list[tuple[float, float, bool]],
) -> None:
    points = [point(ago, chance, sound=sound) for ago, chance, sound in sorted(told, reverse=True)]
    disk = judged(*points)
    sound = [one for one in points if one.sound]
    if disk.confirmed:
        assert sound[-1].at - sound[0].at >= timedelta(minutes=5)
        assert disk.cost.pays
        assert disk.readings >= 2


def test_a_count_that_fell_since_the_reading_before_bears_nothing_out() -> None:
    before, fell = a_reading(device(0), NOW - HOUR, pending=16), a_reading(device(0), NOW, pending=8)
    assert not is_sound(fell, before)
    assert is_sound(before, None)
    assert is_sound(a_reading(device(0), NOW, pending=8), fell)


@pytest.mark.parametrize("limit", [2**16 - 1, 2**32 - 2, 2**32 - 1, 2**48 - 1])
def test_a_count_at_its_types_limit_bears_nothing_out_alone(limit: int) -> None:
    assert not is_sound(a_reading(device(0), NOW, command_timeouts=limit), None)
    assert is_sound(a_reading(device(0), NOW, command_timeouts=limit, pending=8), None)


def packed(value: int | None) -> Reading:
    """A reading with a count that the vendor packs with others, or does not (None)."""
    reading = a_reading(device(0), NOW)
    assert isinstance(reading.seen, Smart)
    attributes = {5: Attribute("Reallocated_Sector_Ct", 3, raw_packed=value)}
    return replace(reading, seen=replace(reading.seen, attributes=attributes))


def test_a_count_that_changed_its_packing_bears_nothing_out() -> None:
    assert not is_sound(packed(196611), packed(None))
    assert not is_sound(packed(None), packed(196611))
    assert is_sound(packed(196611), packed(196611))


def test_a_reading_right_after_a_change_of_firmware_bears_nothing_out() -> None:
    def read(firmware: str | None) -> Reading:
        one = a_reading(device(0), NOW, pending=8)
        assert isinstance(one.seen, Smart)
        return replace(one, seen=replace(one.seen, identity=replace(one.seen.identity, firmware=firmware)))

    assert not is_sound(read("SN04"), read("SN03"))
    assert is_sound(read("SN04"), read("SN04"))
    assert is_sound(read("SN04"), read(None))


def test_a_disk_that_could_not_be_read_bears_nothing_out() -> None:
    blind = replace(a_reading(device(0), NOW), seen=Unreadable(NOW, "smartctl did not answer within 60 s"))
    assert not is_sound(blind, None)


def test_the_forecast_history_is_read_back_from_the_store_after_a_start() -> None:
    store, outlook = SqliteStore(MEMORY), bad_outlook(0)
    keep_history(store, outlook)
    history = ForecastHistory()
    history.update_forecasts({device(0)}, {device(0): outlook}, store, POLICY, NOW)
    points = history.points[device(0)]
    assert (len(points), points[-1].at, points[-1].host) == (8, NOW, HOST)
    assert all(one.sound for one in points)
    store.close()


def test_an_outlook_whose_reading_the_store_lacks_bears_nothing_out() -> None:
    store, outlook = SqliteStore(MEMORY), bad_outlook(0)
    store.save_outlooks([replace(outlook, as_of=NOW - HOUR), outlook])
    history = ForecastHistory()
    history.update_forecasts({device(0)}, {device(0): outlook}, store, POLICY, NOW)
    assert [one.sound for one in history.points[device(0)]] == [False, False]
    store.close()


def test_a_disk_is_followed_on_after_its_drain_ceased_to_pay_and_one_that_never_paid_is_not() -> None:
    store, outlook = SqliteStore(MEMORY), bad_outlook(0)
    keep_history(store, outlook)
    history = ForecastHistory()
    history.update_forecasts({device(0)}, {device(0): outlook, device(1): bad_outlook(1)}, store, POLICY, NOW)
    later = replace(outlook, as_of=NOW + HOUR)
    history.update_forecasts(set(), {device(0): later}, store, POLICY, NOW + HOUR)
    assert history.points.keys() == {device(0)}
    assert history.points[device(0)][-1].at == NOW + HOUR
    store.close()
