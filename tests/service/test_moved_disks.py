"""Disks that change hosts, hosts that change names, clocks that differ: one history for each disk, and nothing lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from data.ids import DeviceId, HostName
from data.outlook import Status
from data.reading import Reading, Unreadable
from service.house import House
from service.telling import causes
from tests.service.conftest import NOON, smart_reading, week_of

OLD, NEW = HostName("stor-01"), HostName("stor-02")
SWAPPED = NOON - timedelta(hours=6)
DISK = DeviceId("ST4000DM000_MOVED")


def at(hours: float) -> datetime:
    """So many hours after the swap."""
    return SWAPPED + timedelta(hours=hours)


def good(hours: float) -> Reading:
    """As its new host reads it."""
    return replace(smart_reading("MOVED", at(hours)), host=NEW)


def gone(hours: float) -> Reading:
    """As its old host misses it."""
    why = "/dev/sda is listed no more: pulled, or off the bus"
    return Reading(DISK, OLD, at(hours), at(hours), Unreadable(at(0), why))


def told(house: House, *readings: Reading) -> Status:
    """What the disk is judged after its week on the old host and these."""
    assert house.ingest([*week_of("MOVED", SWAPPED - timedelta(minutes=30)), *readings]).refused == ()
    while house.step_worker().taken:
        pass
    return house.store.latest_outlooks()[DISK].status


def test_a_disk_that_moved_keeps_its_history_and_is_told_where_it_is(house: House) -> None:
    assert told(house, good(1), good(2)) is Status.GOOD
    assert [reading.host for reading in house.store.readings(DISK)] == [OLD] * 8 + [NEW] * 2
    assert house.store.latest_readings()[DISK].host == NEW


def test_its_old_host_misses_it_while_the_new_one_reads_it(house: House) -> None:
    hourly = [one for hour in range(1, 6) for one in (gone(hour), good(hour + 0.5))]
    assert told(house, *hourly) is Status.GOOD
    outlooks = house.store.outlooks(DISK, SWAPPED)
    assert {one.status for one in outlooks} == {Status.GOOD}


def test_a_disk_that_was_missed_before_its_new_host_read_it_is_well_again_with_that_reading(
    house: House,
) -> None:
    assert told(house, gone(1), gone(2)) is Status.BAD
    house.ingest([good(3)])
    house.step_worker()
    assert house.store.latest_outlooks()[DISK].status is Status.GOOD


@pytest.mark.parametrize("behind", [timedelta(hours=1), timedelta(days=2)])
def test_readings_of_a_new_host_whose_clock_is_behind_are_all_kept(house: House, behind: timedelta) -> None:
    late = [replace(good(hour), taken_at=at(hour) - behind) for hour in (0.1, 0.2)]
    assert told(house, *late) is Status.GOOD
    kept = house.store.readings(DISK)
    assert len(kept) == 8 + 2
    assert [reading.taken_at for reading in kept] == sorted(reading.taken_at for reading in kept)
    # The newest by its own time is what is shown: the old host's, until the other clock has caught up.
    assert house.store.latest_readings()[DISK].host == OLD


def test_what_a_renamed_host_had_spooled_under_its_old_name_comes_late_and_renames_nothing_back(
    house: House,
) -> None:
    backlog = replace(good(0.5), host=OLD)
    assert told(house, good(2), backlog) is Status.GOOD
    assert house.store.latest_readings()[DISK].host == NEW
    assert len(house.store.readings(DISK)) == 8 + 2


def test_one_instant_in_two_time_zones_is_one_reading(house: House) -> None:
    kiritimati = timezone(timedelta(hours=14))
    same = replace(good(1), taken_at=at(1).astimezone(kiritimati))
    assert told(house, good(1), same) is Status.GOOD
    assert len(house.store.readings(DISK)) == 8 + 1


def test_a_disk_that_changed_its_serial_is_another_and_begins_anew(house: House) -> None:
    assert told(house, smart_reading("RENAMED", at(1))) is Status.GOOD
    assert house.store.latest_outlooks()[DeviceId("ST4000DM000_RENAMED")].status is Status.UNKNOWN


def test_a_disk_that_two_hosts_answer_for_is_told_to_a_person_and_one_that_moved_is_not(house: House) -> None:
    there = replace(good(1), host=OLD)
    assert told(house, good(1), good(2)) is Status.GOOD
    assert house.sight().twice == {}
    turns = [replace(there, taken_at=at(hour), host=OLD if hour % 2 else NEW) for hour in range(3, 7)]
    house.ingest(turns)
    while house.step_worker().taken:
        pass
    assert house.sight().twice == {DISK: (OLD, NEW)}
    (cause,) = (one for one in causes(house.scene()) if one.key.startswith("twice:"))
    assert "answers on stor-01 and stor-02 in turns" in cause.points[0].line
