"""Old records are dropped, records that still count stay, and a process that only looks back holds none."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest

from predrain.data.drain import JournalEntry
from predrain.data.ids import HostName, OsdId
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from predrain.data.log.log_port import Record, Topic
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.outlook import Status
from predrain.service.access.audit import AUDIT
from predrain.service.app import retention, scheduler
from predrain.service.app.application import Application
from predrain.service.app.retention import DroppedCounts
from predrain.service.config.settings import RetentionTable
from predrain.service.fleet.drain_timeline import DrainSample, encode_drain_sample
from predrain.service.fleet.life_book import LifeBook
from predrain.service.streams import log_recall
from predrain.service.streams.dead_letters import list_dead_letters
from tests.deadlines import idle_seconds
from tests.service.conftest import NOON, Place, shut, smart_reading, week_of
from tests.service.test_disk_lives import OLD, replace_disk
from tests.service.test_drains import World, made, world  # noqa: F401
from tests.service.test_worker import work

DAY = timedelta(days=1)


def later(application: Application, days: float) -> datetime:
    application.clock.sleep(days * 86_400)
    return application.clock.now()


def held(place: Place, topic: Topic) -> int:
    """Return the number of records of a topic in the log's file.

    The function reads the file itself, because a group of readers would hold the records.
    """
    with sqlite3.connect(place.state.log) as file:
        (count,) = file.execute("SELECT count(*) FROM records WHERE topic = ?", (topic,)).fetchone()
    file.close()
    return int(count)


def test_an_application_in_its_first_week_drops_nothing(application: Application) -> None:
    application.ingest(week_of("A", pending=400))
    work(application)
    later(application, 6.9)
    assert application.apply_retention() == DroppedCounts(0, 0)


def test_readings_leave_the_log_after_a_week_and_the_store_after_400_days(
    place: Place, application: Application
) -> None:
    application.ingest(week_of("A"))
    work(application)
    later(application, 7.1)
    application.ingest([smart_reading("A", application.clock.now())])
    work(application)
    assert application.apply_retention() == DroppedCounts(rows=0, records=8)
    assert held(place, Topic.READINGS) == 1
    later(application, 394)
    assert application.apply_retention().rows == 16
    assert len(application.store.readings(smart_reading("A").device)) == 1


def test_readings_that_the_worker_has_not_taken_stay_in_the_log_for_ever(place: Place) -> None:
    down = place.application()
    down.ingest(week_of("A"))  # and its worker has not even begun: it finds no bundle
    later(down, 500)
    assert down.apply_retention().records == 0
    shut(down)
    application = place.application()
    application.start()
    assert work(application) == 8
    assert application.apply_retention().records == 8
    shut(application)


def test_alerts_about_disks_outlive_the_readings_and_end_with_the_history(place: Place) -> None:
    application = place.application()
    application.start()
    application.ingest(week_of("A", pending=400))
    work(application)
    later(application, 200)
    application.apply_retention()
    shut(application)
    again = place.application()
    assert [alert.outlook.status for alert in again.announcements.list_newest_alerts()] == [Status.BAD]
    later(again, 201)
    again.apply_retention()
    shut(again)
    last = place.application()
    assert last.announcements.list_newest_alerts() == ()
    shut(last)


def test_curves_of_old_drains_are_dropped_though_every_start_looks_back_at_them(place: Place) -> None:
    application = place.application()
    application.log.append(Topic.ACTIONS, [encode_drain_sample(DrainSample("d", NOON, 9, 1, None))])
    shut(application)
    for days, kept in ((399, 1), (2, 0)):
        again = place.application()
        later(again, days)
        again.apply_retention()
        assert held(place, Topic.ACTIONS) == kept
        shut(again)


def test_a_dead_letter_waits_to_be_sent_again_as_long_as_history_is_kept(application: Application) -> None:
    application.log.append(Topic.READINGS, [Record("x", b"no json")])
    work(application)
    later(application, 399)
    application.apply_retention()
    assert len(list_dead_letters(application.log).letters) == 1
    later(application, 2)
    assert application.apply_retention().records == 1
    assert list_dead_letters(application.log).letters == ()


def test_records_that_do_not_say_when_they_were_sent_go_with_those_around_them(
    place: Place, application: Application
) -> None:
    application.ingest([smart_reading("A")])
    application.log.append(
        Topic.READINGS, [Record("x", b"\xff"), Record("y", b'{"sent_at": "2026-03-10T12:00:00"}')]
    )
    application.ingest([smart_reading("B")])
    application.log.append(Topic.READINGS, [Record("z", b"7")])
    work(application)
    later(application, 8)
    assert application.apply_retention().records == 4
    assert held(place, Topic.READINGS) == 1


def test_a_batch_in_which_no_record_says_when_does_not_stop_those_behind_it(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 3)
    application.log.append(Topic.READINGS, [Record("x", b"\xff")] * 4)
    application.ingest(week_of("A"))
    work(application)
    later(application, 8)
    assert application.apply_retention().records == 12


def test_a_record_of_a_clock_that_ran_ahead_does_not_keep_all_that_follows(
    place: Place, application: Application
) -> None:
    application.ingest([smart_reading("A")])
    ahead = b'{"sent_at": "2099-01-01T00:00:00Z"}'
    application.log.append(Topic.READINGS, [Record("x", ahead)])
    application.ingest([smart_reading("B")])
    work(application)
    later(application, 8)
    assert application.apply_retention().records == 3
    assert held(place, Topic.READINGS) == 0


def test_old_latencies_go_and_journals_stay(application: Application) -> None:
    window = LatencySummary(OsdId(3), HostName("h"), NOON, 15.0, 9)
    application.store.add_latency(
        LatencyWindows.from_summaries([window, replace(window, window_start=NOON + 3 * DAY)])
    )
    application.store.add_journal([JournalEntry("d", NOON, "seen", "decided")])
    later(application, 8)
    assert application.apply_retention() == DroppedCounts(1, 0)
    later(application, 4000)
    application.apply_retention()
    assert len(application.store.journal("d")) == 1


def test_audit_lines_are_dropped_when_their_own_retention_is_over(application: Application) -> None:
    settings = application.settings.retention.model_copy(update={"audit_days": 1000.0})
    application.settings = application.settings.model_copy(update={"retention": settings})
    application.store.add_journal([JournalEntry(AUDIT, NOON, "from here", "POST /x", "200", caller="a")])
    later(application, 999)
    assert application.apply_retention() == DroppedCounts(0, 0)
    later(application, 2)
    assert application.apply_retention() == DroppedCounts(1, 0)
    assert application.store.journal(AUDIT) == ()


def test_a_replaced_disk_is_still_told_as_replaced_when_its_past_is_dropped(world: World) -> None:  # noqa: F811
    replace_disk(world)
    before = world.application.get_snapshot().lives[OLD].change
    assert len(world.application.store.read_life_changes(device=OLD)) > 1
    later(world.application, 500)
    world.application.apply_retention()
    assert world.application.store.read_life_changes(device=OLD) == (before,)
    began = LifeBook(world.application.store, world.application.clock.now(), DAY)
    began.apply_elapsed_time(world.application.clock.now())
    assert began.current_lives[OLD].change == before


def test_the_log_gives_its_room_back(place: Place) -> None:
    application = place.application()
    application.start()
    for _ in range(20):
        application.ingest([smart_reading(f"{n:03}", application.clock.now()) for n in range(50)])
    work(application)
    shut(application)
    before = place.state.log.stat().st_size
    application = place.application()
    later(application, 8)
    assert application.apply_retention().records == 1000
    shut(application)
    assert place.state.log.stat().st_size < before / 2


def test_a_start_recalls_the_newest_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_recall, "RECALLED", 100)
    log = SqliteLog(place.state.log)
    line = [DrainSample("d", NOON + n * timedelta(minutes=1), 10_000 - n, 1, None) for n in range(330)]
    log.append(Topic.ACTIONS, [encode_drain_sample(one) for one in line])
    log.close()
    for _ in range(2):
        application = place.application()
        recalled = application.timelines.list_samples("d")
        assert recalled == tuple(line[-len(recalled) :])
        assert len(recalled) == 100
        shut(application)


def test_a_new_bundle_stays_quiet_whatever_was_dropped_since_the_last_one(place: Place) -> None:
    for fingerprint, quiet in (("default-1", False), ("default-2", True), ("default-2", True)):
        world: World
        (world,) = made(replace(place, forecaster=Named(place.forecaster, fingerprint)))  # type: ignore[arg-type]
        assert (world.application.control._controller.bundle_since is not None) is quiet
        shut(world.application)


class Named:
    """The real forecaster under another fingerprint."""

    def __init__(self, real: object, fingerprint: str) -> None:
        self.real, self.fingerprint = real, fingerprint

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)


def run_with_expired_readings(place: Place) -> Application:
    settings = place.settings.model_copy(update={"retention": RetentionTable(log_days=0)})
    application = replace(place, settings=settings).application()
    application.start()
    application.ingest(week_of("A"))
    work(application)
    later(application, 0.1)
    application.run()
    return application


def test_a_running_application_drops_what_is_old_by_itself(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "RETAIN_FIRST_SECONDS", 0.1)
    application = run_with_expired_readings(place)
    end = idle_seconds() + 10
    while held(place, Topic.READINGS) and idle_seconds() < end:
        time.sleep(0.02)
    assert held(place, Topic.READINGS) == 0
    shut(application)


def test_the_first_retention_leaves_the_first_minute_to_scores_and_the_page(place: Place) -> None:
    application = run_with_expired_readings(place)
    time.sleep(0.3)
    assert held(place, Topic.READINGS) > 0
    shut(application)


def test_readings_and_outlooks_older_than_90_days_are_thinned_to_one_a_day(application: Application) -> None:
    later(application, 2)
    application.ingest([smart_reading("A", NOON + n * timedelta(hours=6)) for n in range(8)])
    work(application)
    later(application, 80)
    assert application.apply_retention().rows == 0
    later(application, 20)
    assert application.apply_retention().rows > 0
    kept = application.store.readings(smart_reading("A").device)
    assert [one.taken_at.day for one in kept] == sorted({one.taken_at.day for one in kept})
    assert kept[-1].taken_at == NOON + 42 * timedelta(hours=1)


def thinned_since(application: Application, monkeypatch: pytest.MonkeyPatch) -> list[date | None]:
    """The first day of each thinning from now on."""
    asked, thin = list[date | None](), application.store.thin_to_daily_values

    def note(before: date, since: date | None = None, archived: object = None) -> int:
        assert archived is None
        asked.append(since)
        return thin(before, since)

    monkeypatch.setattr(application.store, "thin_to_daily_values", note)
    return asked


def test_a_day_s_thinning_looks_at_the_days_since_the_last_one_and_weekly_at_all(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = thinned_since(application, monkeypatch)
    for _ in range(9):
        application.apply_retention()
        later(application, 1)
    first = (NOON - retention.HOURLY).date()
    week = [first + n * DAY - retention.LATE for n in range(6)]
    assert asked == [None, *week, None, first + 7 * DAY - retention.LATE]


def test_a_start_thins_the_days_since_the_thinning_of_the_process_before(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = place.application()
    first.apply_retention()
    shut(first)
    second = place.application()
    later(second, 1)
    asked = thinned_since(second, monkeypatch)
    second.apply_retention()
    assert asked == [(NOON - retention.HOURLY).date() - retention.LATE]
    shut(second)


@pytest.mark.parametrize("note", [b"", b"no JSON", b'{"before": 7}', b'{"before": "2026-13-01"}'])
def test_a_note_of_the_thinned_days_that_cannot_be_read_lets_the_thinning_look_at_all_days(
    application: Application, monkeypatch: pytest.MonkeyPatch, note: bytes
) -> None:
    application.apply_retention()
    application.store.write_notes(retention.ROOM, {"thinned": note})
    asked = thinned_since(application, monkeypatch)
    application.apply_retention()
    application.apply_retention()
    assert asked == [None, (NOON - retention.HOURLY).date() - retention.LATE]


def test_after_a_pause_the_thinning_leaves_no_day_out(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = thinned_since(application, monkeypatch)
    for days in (5, 400, -3, 0):
        application.apply_retention()
        later(application, days)
    first = (NOON - retention.HOURLY).date()
    assert asked == [None, first - retention.LATE, None, None]


def test_readings_that_come_very_late_are_thinned_within_a_week(application: Application) -> None:
    later(application, 100)
    application.apply_retention()
    application.store.add_readings(
        [smart_reading("A", NOON - 30 * DAY + n * timedelta(hours=1)) for n in range(8)]
    )
    for _ in range(6):
        later(application, 1)
        application.apply_retention()
    assert len(application.store.readings(smart_reading("A").device)) == 8
    later(application, 1)
    assert application.apply_retention().rows == 7


def test_latencies_older_than_a_day_are_kept_by_ten_minutes(application: Application) -> None:
    window = LatencySummary(OsdId(3), HostName("h"), NOON, 60.0, 9)
    minutes = [replace(window, window_start=NOON + n * timedelta(minutes=1)) for n in range(30)]
    application.store.add_latency(LatencyWindows.from_summaries(minutes))
    later(application, 0.9)
    assert application.apply_retention() == DroppedCounts(0, 0)
    later(application, 1)
    assert application.apply_retention() == DroppedCounts(27, 0)
    assert [one.operations for one in application.store.read_latency_summaries(3, NOON)] == [90, 90, 90]


def test_a_standby_leaves_the_rows_of_the_store_to_the_active_service(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application._turning._loops.request_stop()  # so that nothing waits for a day
    application.store.add_latency(
        LatencyWindows.from_summaries([LatencySummary(OsdId(3), HostName("h"), NOON, 60.0, 9)])
    )
    later(application, 8)
    monkeypatch.setattr(Application, "is_active", False)
    application._turning._retain()
    assert application.store.has_latency()
    monkeypatch.undo()
    application._turning._retain()
    assert not application.store.has_latency()
