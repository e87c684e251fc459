"""What is too old goes, what still counts stays, and nobody who only looks back keeps it."""

from __future__ import annotations

import sqlite3
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from predrain.data.drain import JournalEntry
from predrain.data.ids import HostName, OsdId
from predrain.data.log.port import Record, Topic
from predrain.data.log.sqlite import SqliteLog
from predrain.data.outlook import Status
from predrain.data.reading import LatencySummary
from predrain.data.windows import Windows
from predrain.service import log_recall as memory
from predrain.service import retention
from predrain.service.access.audit import AUDIT
from predrain.service.application import House
from predrain.service.drains.timeline import DrainSample, record
from predrain.service.lifecycle.book import LifeBook
from predrain.service.retention import Dropped
from predrain.service.scoring.deadletters import standing
from predrain.service.settings import RetentionTable
from tests.deadlines import idle_seconds
from tests.service.conftest import NOON, Place, shut, smart_reading, week_of
from tests.service.test_disk_lives import OLD, replace_disk
from tests.service.test_drains import World, made, world  # noqa: F401
from tests.service.test_worker import work

DAY = timedelta(days=1)


def later(house: House, days: float) -> datetime:
    house.clock.sleep(days * 86_400)
    return house.clock.now()


def held(place: Place, topic: Topic) -> int:
    """How many records of a topic the log's file still has; a group of readers would hold them."""
    with sqlite3.connect(place.state.log) as file:
        (count,) = file.execute("SELECT count(*) FROM records WHERE topic = ?", (topic,)).fetchone()
    file.close()
    return int(count)


def test_a_house_in_its_first_week_drops_nothing(house: House) -> None:
    house.ingest(week_of("A", pending=400))
    work(house)
    later(house, 6.9)
    assert house.retain() == Dropped(0, 0)


def test_readings_leave_the_log_after_a_week_and_the_store_after_400_days(place: Place, house: House) -> None:
    house.ingest(week_of("A"))
    work(house)
    later(house, 7.1)
    house.ingest([smart_reading("A", house.clock.now())])
    work(house)
    assert house.retain() == Dropped(rows=0, records=8)
    assert held(place, Topic.READINGS) == 1
    later(house, 394)
    assert house.retain().rows == 16
    assert len(house.store.readings(smart_reading("A").device)) == 1


def test_readings_that_the_worker_has_not_taken_stay_in_the_log_for_ever(place: Place) -> None:
    down = place.house()
    down.ingest(week_of("A"))  # and its worker has not even begun: it finds no bundle
    later(down, 500)
    assert down.retain().records == 0
    shut(down)
    house = place.house()
    house.start()
    assert work(house) == 8
    assert house.retain().records == 8
    shut(house)


def test_what_is_told_of_disks_outlives_the_readings_and_ends_with_the_history(place: Place) -> None:
    house = place.house()
    house.start()
    house.ingest(week_of("A", pending=400))
    work(house)
    later(house, 200)
    house.retain()
    shut(house)
    again = place.house()
    assert [alert.outlook.status for alert in again.announcements.newest()] == [Status.BAD]
    later(again, 201)
    again.retain()
    shut(again)
    last = place.house()
    assert last.announcements.newest() == ()
    shut(last)


def test_curves_of_old_drains_are_dropped_though_every_start_looks_back_at_them(place: Place) -> None:
    house = place.house()
    house.log.append(Topic.ACTIONS, [record(DrainSample("d", NOON, 9, 1, None))])
    shut(house)
    for days, kept in ((399, 1), (2, 0)):
        again = place.house()
        later(again, days)
        again.retain()
        assert held(place, Topic.ACTIONS) == kept
        shut(again)


def test_a_dead_letter_waits_to_be_sent_again_as_long_as_history_is_kept(house: House) -> None:
    house.log.append(Topic.READINGS, [Record("x", b"no json")])
    work(house)
    later(house, 399)
    house.retain()
    assert len(standing(house.log).letters) == 1
    later(house, 2)
    assert house.retain().records == 1
    assert standing(house.log).letters == ()


def test_records_that_do_not_say_when_they_were_sent_go_with_those_around_them(
    place: Place, house: House
) -> None:
    house.ingest([smart_reading("A")])
    house.log.append(
        Topic.READINGS, [Record("x", b"\xff"), Record("y", b'{"sent_at": "2026-03-10T12:00:00"}')]
    )
    house.ingest([smart_reading("B")])
    house.log.append(Topic.READINGS, [Record("z", b"7")])
    work(house)
    later(house, 8)
    assert house.retain().records == 4
    assert held(place, Topic.READINGS) == 1


def test_a_batch_in_which_no_record_says_when_does_not_stop_those_behind_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 3)
    house.log.append(Topic.READINGS, [Record("x", b"\xff")] * 4)
    house.ingest(week_of("A"))
    work(house)
    later(house, 8)
    assert house.retain().records == 12


def test_a_record_of_a_clock_that_ran_ahead_does_not_keep_all_that_follows(
    place: Place, house: House
) -> None:
    house.ingest([smart_reading("A")])
    ahead = b'{"sent_at": "2099-01-01T00:00:00Z"}'
    house.log.append(Topic.READINGS, [Record("x", ahead)])
    house.ingest([smart_reading("B")])
    work(house)
    later(house, 8)
    assert house.retain().records == 3
    assert held(place, Topic.READINGS) == 0


def test_old_latencies_go_and_journals_stay(house: House) -> None:
    window = LatencySummary(OsdId(3), HostName("h"), NOON, 15.0, 9)
    house.store.add_latency(Windows.of([window, replace(window, window_start=NOON + 3 * DAY)]))
    house.store.add_journal([JournalEntry("d", NOON, "seen", "decided")])
    later(house, 8)
    assert house.retain() == Dropped(1, 0)
    later(house, 4000)
    house.retain()
    assert len(house.store.journal("d")) == 1


def test_what_was_asked_and_by_whom_goes_when_its_own_time_is_over(house: House) -> None:
    settings = house.settings.retention.model_copy(update={"audit_days": 1000.0})
    house.settings = house.settings.model_copy(update={"retention": settings})
    house.store.add_journal([JournalEntry(AUDIT, NOON, "from here", "POST /x", "200", caller="a")])
    later(house, 999)
    assert house.retain() == Dropped(0, 0)
    later(house, 2)
    assert house.retain() == Dropped(1, 0)
    assert house.store.journal(AUDIT) == ()


def test_a_replaced_disk_is_still_told_as_replaced_when_its_past_is_dropped(world: World) -> None:  # noqa: F811
    replace_disk(world)
    before = world.house.sight().lives[OLD].change
    assert len(world.house.store.read_life_changes(device=OLD)) > 1
    later(world.house, 500)
    world.house.retain()
    assert world.house.store.read_life_changes(device=OLD) == (before,)
    began = LifeBook(world.house.store, world.house.clock.now(), DAY)
    began.age(world.house.clock.now())
    assert began.shown[OLD].change == before


def test_the_log_gives_its_room_back(place: Place) -> None:
    house = place.house()
    house.start()
    for _ in range(20):
        house.ingest([smart_reading(f"{n:03}", house.clock.now()) for n in range(50)])
    work(house)
    shut(house)
    before = place.state.log.stat().st_size
    house = place.house()
    later(house, 8)
    assert house.retain().records == 1000
    shut(house)
    assert place.state.log.stat().st_size < before / 2


def test_a_start_recalls_the_newest_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "RECALLED", 100)
    log = SqliteLog(place.state.log)
    line = [DrainSample("d", NOON + n * timedelta(minutes=1), 10_000 - n, 1, None) for n in range(330)]
    log.append(Topic.ACTIONS, [record(one) for one in line])
    log.close()
    for _ in range(2):
        house = place.house()
        recalled = house.timelines.of("d")
        assert recalled == tuple(line[-len(recalled) :])
        assert len(recalled) == 100
        shut(house)


def test_a_new_bundle_stays_quiet_whatever_was_dropped_since_the_last_one(place: Place) -> None:
    for fingerprint, quiet in (("default-1", False), ("default-2", True), ("default-2", True)):
        world: World
        (world,) = made(replace(place, forecaster=Named(place.forecaster, fingerprint)))  # type: ignore[arg-type]
        assert (world.house.control._controller.bundle_since is not None) is quiet
        shut(world.house)


class Named:
    """The real forecaster under another fingerprint."""

    def __init__(self, real: object, fingerprint: str) -> None:
        self.real, self.fingerprint = real, fingerprint

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)


def test_a_running_house_drops_what_is_old_by_itself(place: Place) -> None:
    import time

    forecast = replace(
        place, settings=place.settings.model_copy(update={"retention": RetentionTable(log_days=0)})
    )
    house = forecast.house()
    house.start()
    house.ingest(week_of("A"))
    work(house)
    later(house, 0.1)
    house.run()
    end = idle_seconds() + 10
    while held(place, Topic.READINGS) and idle_seconds() < end:
        time.sleep(0.02)
    assert held(place, Topic.READINGS) == 0
    shut(house)


def test_readings_and_outlooks_older_than_90_days_are_thinned_to_one_a_day(house: House) -> None:
    later(house, 2)
    house.ingest([smart_reading("A", NOON + n * timedelta(hours=6)) for n in range(8)])
    work(house)
    later(house, 80)
    assert house.retain().rows == 0
    later(house, 20)
    assert house.retain().rows > 0
    kept = house.store.readings(smart_reading("A").device)
    assert [one.taken_at.day for one in kept] == sorted({one.taken_at.day for one in kept})
    assert kept[-1].taken_at == NOON + 42 * timedelta(hours=1)


def test_latencies_older_than_a_day_are_kept_by_ten_minutes(house: House) -> None:
    window = LatencySummary(OsdId(3), HostName("h"), NOON, 60.0, 9)
    minutes = [replace(window, window_start=NOON + n * timedelta(minutes=1)) for n in range(30)]
    house.store.add_latency(Windows.of(minutes))
    later(house, 0.9)
    assert house.retain() == Dropped(0, 0)
    later(house, 1)
    assert house.retain() == Dropped(27, 0)
    assert [one.operations for one in house.store.latency(3, NOON)] == [90, 90, 90]


def test_what_another_service_on_the_same_store_is_thinning_is_left_to_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house._turning._loops.end()  # so that nothing waits for a day
    house.store.add_latency(Windows.of([LatencySummary(OsdId(3), HostName("h"), NOON, 60.0, 9)]))
    later(house, 8)
    monkeypatch.setattr(house.store, "alone", lambda _task: nullcontext(False))
    house._turning._retain()
    assert house.store.has_latency()
    monkeypatch.undo()
    house._turning._retain()
    assert not house.store.has_latency()
