"""Disks that change hosts, two hosts that name one disk, clocks that differ: whose readings a disk's history holds."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from predrain.data.ids import DeviceId, HostName
from predrain.data.outlook import Status
from predrain.data.reading import Reading, Unreadable
from predrain.data.residence import name_apart
from predrain.data.unreadable import UnreadableCause
from predrain.service.app.application import Application
from predrain.service.fleet.residents import note_answer, note_listed
from predrain.service.notifications import find_alert_causes
from tests.service.conftest import NOON, Place, Site, envelope, shut, smart_reading, week_of

OLD, NEW = HostName("stor-01"), HostName("stor-02")
SWAPPED = NOON - timedelta(hours=6)
DISK = DeviceId("ST4000DM000_MOVED")
APART = name_apart(DISK, NEW)


def at(hours: float) -> datetime:
    """So many hours after the swap."""
    return SWAPPED + timedelta(hours=hours)


def old(hours: float) -> Reading:
    """Return the old host's reading of the disk."""
    return smart_reading("MOVED", at(hours))


def good(hours: float) -> Reading:
    """Return the new host's reading of the disk."""
    return replace(old(hours), host=NEW)


def gone(hours: float) -> Reading:
    """Return the old host's report that the disk is gone."""
    why = "/dev/sda is listed no more: pulled, or off the bus"
    return Reading(DISK, OLD, at(hours), at(hours), Unreadable(at(0), why, UnreadableCause.DEVICE_GONE))


def dying(hours: float) -> Reading:
    """Return the old host's reading of the disk while it fails."""
    return smart_reading("MOVED", at(hours), pending=int(200 * (hours + 1)), passed=False)


def work(application: Application) -> None:
    while application.step_worker().taken:
        pass


def told(application: Application, *readings: Reading) -> Status:
    """Return the disk's status after its week on the old host and these readings."""
    assert application.ingest([*week_of("MOVED", SWAPPED - timedelta(minutes=30)), *readings]).refused == ()
    work(application)
    return application.store.latest_outlooks()[DISK].status


def hosts_of(application: Application, device: DeviceId = DISK) -> list[HostName]:
    """The host of each reading in a history, oldest first."""
    return [reading.host for reading in application.store.readings(device)]


def test_a_disk_whose_old_host_falls_silent_lives_in_the_new_one_after_the_named_time(
    application: Application,
) -> None:
    assert told(application, good(1), good(2), good(5)) is Status.GOOD
    assert hosts_of(application) == [OLD] * 8
    assert hosts_of(application, APART) == [NEW] * 3
    application.ingest([good(5.6)])  # the old host's last reading is half an hour before the swap
    work(application)
    assert hosts_of(application) == [OLD] * 8 + [NEW] * 4
    assert application.store.latest_readings()[DISK].host == NEW
    assert application.store.latest_readings().keys() == application.store.latest_outlooks().keys() == {DISK}
    assert application.get_snapshot().readings.keys() == {DISK}


def test_a_disk_that_its_old_host_misses_lives_at_once_in_the_new_host_that_reads_it(
    application: Application,
) -> None:
    hourly = [one for hour in range(1, 6) for one in (gone(hour), good(hour + 0.5))]
    assert told(application, *hourly) is Status.GOOD
    assert {one.status for one in application.store.outlooks(DISK, SWAPPED)} == {Status.GOOD}
    assert hosts_of(application) == [OLD] * 9 + [NEW] * 5


def test_a_disk_that_was_missed_before_its_new_host_read_it_is_well_again_with_that_reading(
    application: Application,
) -> None:
    assert told(application, gone(1), gone(2)) is Status.BAD
    application.ingest([good(3)])
    application.step_worker()
    assert application.store.latest_outlooks()[DISK].status is Status.GOOD


@pytest.mark.parametrize("behind", [timedelta(hours=1), timedelta(days=2)])
def test_readings_of_a_new_host_whose_clock_is_behind_are_all_kept_and_prove_nothing(
    application: Application, behind: timedelta
) -> None:
    late = [replace(good(hour), taken_at=at(hour) - behind) for hour in (0.1, 0.2)]
    assert told(application, *late) is Status.GOOD
    assert (hosts_of(application), hosts_of(application, APART)) == ([OLD] * 8, [NEW] * 2)


def test_a_late_reading_that_the_old_host_spooled_before_the_move_does_not_move_the_disk_back(
    application: Application,
) -> None:
    assert told(application, good(5.6)) is Status.GOOD
    application.ingest([replace(old(-5), received_at=at(5.8))])
    work(application)
    assert application.store.latest_readings()[DISK].host == NEW
    assert hosts_of(application) == [OLD] * 9 + [NEW]


def test_one_instant_in_two_time_zones_is_one_reading(application: Application) -> None:
    same = replace(old(1), taken_at=at(1).astimezone(timezone(timedelta(hours=14))))
    assert told(application, old(1), same) is Status.GOOD
    assert len(application.store.readings(DISK)) == 8 + 1


def test_a_disk_that_changed_its_serial_is_another_and_begins_anew(application: Application) -> None:
    assert told(application, smart_reading("RENAMED", at(1))) is Status.GOOD
    assert application.store.latest_outlooks()[DeviceId("ST4000DM000_RENAMED")].readings == 1


def test_two_hosts_that_name_one_disk_at_once_are_two_disks_and_a_person_is_told(
    application: Application,
) -> None:
    assert told(application, good(1), good(2)) is Status.GOOD
    assert not [
        one for one in find_alert_causes(application.build_alert_snapshot()) if one.key.startswith("twice:")
    ]
    application.ingest([old(3), good(4), old(5)])
    work(application)
    assert (hosts_of(application), hosts_of(application, APART)) == ([OLD] * 10, [NEW] * 3)
    assert application.get_snapshot().readings.keys() == {DISK, APART}
    (cause,) = (
        one for one in find_alert_causes(application.build_alert_snapshot()) if one.key.startswith("twice:")
    )
    assert "answers on stor-01 and on stor-02 since 10 Mar 07:00 UTC" in cause.points[0].line
    assert "predrain disk host" not in cause.todo


def test_after_a_day_of_two_hosts_a_person_is_asked_with_the_command_that_answers(
    place: Place, application: Application
) -> None:
    told(application, good(1), old(2), good(3))
    place.clock.sleep(26 * 3600)
    (cause,) = (
        one for one in find_alert_causes(application.build_alert_snapshot()) if one.key.startswith("twice:")
    )
    assert "`predrain disk host DEVICE HOST`" in cause.todo


@pytest.mark.parametrize("answer", [OLD, NEW])
def test_a_persons_answer_gives_the_history_to_one_host_and_keeps_the_other_disk_apart(
    site: Site, answer: HostName
) -> None:
    application = site.application
    told(application, dying(1), good(1.5), dying(2), good(2.5), dying(3), good(3.5))
    path = f"/api/v1/devices/{DISK}/host"
    found = site.client.get(path, headers=site.acting).json()
    assert (found["state"], found["host"], found["other_hosts"]) == ("contested", OLD, [NEW])
    assert (found["hosts"], found["by"]) == ([OLD, NEW], None)
    assert site.client.post(path, json={"host": "stor-09"}, headers=site.acting).status_code == 422
    said = site.client.post(path, json={"host": answer}, headers=site.acting)
    assert said.status_code == 202, said.text
    application.step_worker()
    other = OLD if answer == NEW else NEW
    assert {reading.host for reading in application.store.readings(DISK, at(1.2))} == {answer}
    assert set(hosts_of(application, name_apart(DISK, other))) == {other}
    status = application.store.latest_outlooks()[DISK].status
    assert status is (Status.BAD if answer == OLD else Status.GOOD)
    settled = site.client.get(path, headers=site.acting).json()
    assert (settled["state"], settled["host"], settled["by"]) == ("settled", answer, "person")
    assert not [
        one for one in find_alert_causes(application.build_alert_snapshot()) if one.key.startswith("twice:")
    ]
    # And what both send from now on goes where the person said.
    application.ingest([replace(good(4), host=other), replace(good(4.2), host=answer)])
    work(application)
    assert application.store.latest_readings()[DISK].host == answer
    assert application.store.latest_readings()[name_apart(DISK, other)].host == other


def test_an_answer_puts_a_home_back_that_another_host_took_over_while_it_was_silent(
    application: Application,
) -> None:
    told(application, good(1), good(5.6))  # the old host was cut off, and delivers now
    application.ingest([replace(dying(hour), received_at=at(5.9)) for hour in (1, 2, 3, 4)])
    work(application)
    assert (hosts_of(application)[-2:], hosts_of(application, name_apart(DISK, OLD))) == (
        [NEW] * 2,
        [OLD] * 4,
    )
    note_answer(application.store, DISK, OLD)
    application.step_worker()
    assert (hosts_of(application), hosts_of(application, APART)) == ([OLD] * 12, [NEW] * 2)
    assert application.store.latest_outlooks()[DISK].status is Status.BAD


def test_the_clusters_device_list_decides_at_once_where_it_names_one_of_the_hosts(
    application: Application,
) -> None:
    told(application, good(1), old(2), good(3))
    note_listed(application.store, {DISK: [NEW]})
    application.step_worker()
    assert application.store.latest_readings()[DISK].host == NEW
    assert hosts_of(application, name_apart(DISK, OLD)) == [OLD]
    application.ingest([dying(4)])
    work(application)
    assert application.store.latest_outlooks()[DISK].status is Status.GOOD


def test_a_restart_in_the_middle_knows_both_histories(place: Place, application: Application) -> None:
    told(application, good(1), old(2), good(3))
    shut(application)
    again = place.application()
    again.start()
    try:
        assert again.get_snapshot().residences[DISK].hosts_apart == {NEW}
        again.ingest([good(4), old(4.5)])
        work(again)
        assert (hosts_of(again), hosts_of(again, APART)) == ([OLD] * 10, [NEW] * 3)
    finally:
        shut(again)


def post(site: Site, reading: Reading) -> None:
    """As a collector delivers it, and the worker takes it."""
    sent = site.client.post(
        "/api/v1/readings", json=[envelope(site.application, reading)], headers=site.ingesting
    )
    assert sent.json()["refused"] == [], sent.text
    work(site.application)


def test_seven_backdated_readings_of_another_host_change_nothing_of_a_healthy_disk(site: Site) -> None:
    application = site.application
    for reading in week_of("MOVED", NOON - timedelta(minutes=5)):
        post(site, reading)
    before = application.store.latest_outlooks()[DISK]
    for day in range(7, 0, -1):
        then = NOON - timedelta(days=day, hours=-1)
        post(site, replace(smart_reading("MOVED", then, pending=4000, passed=False), host=NEW))
    assert application.store.latest_outlooks()[DISK] == before
    assert hosts_of(application) == [OLD] * 8
    shown = site.client.get(f"/api/v1/devices/{DISK}", headers=site.acting).json()
    assert (shown["status"], shown["host"]) == ("good", OLD)


@pytest.mark.parametrize("liar", [OLD, NEW])
def test_a_healthy_reading_of_the_future_every_four_minutes_hides_no_dying_disk(
    place: Place, site: Site, liar: HostName
) -> None:
    application, clock = site.application, place.clock
    for reading in week_of("MOVED", NOON - timedelta(minutes=30)):
        post(site, reading)
    for minutes in range(0, 41, 4):
        clock.sleep(240)
        ahead = clock.now() + timedelta(seconds=280)
        post(site, replace(smart_reading("MOVED", ahead), host=liar))
        if minutes % 20 == 0:
            clock.sleep(1)
            post(site, smart_reading("MOVED", clock.now(), pending=500 + 100 * minutes, passed=False))
            assert application.store.latest_outlooks()[DISK].status is Status.BAD
    if liar == NEW:
        assert set(hosts_of(application)) == {OLD}
        assert application.store.latest_outlooks()[DISK].status is Status.BAD


def test_no_device_may_be_sent_under_the_name_of_a_history_that_is_kept_apart(site: Site) -> None:
    forged = replace(old(1), device=APART)
    sent = site.client.post(
        "/api/v1/readings", json=[envelope(site.application, forged)], headers=site.ingesting
    )
    assert "send the drive's own name" in sent.json()["refused"][0]["reason"]
