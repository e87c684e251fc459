"""The schedule of self-tests: spread over its period, once a period, and never past a guard."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from predrain.data.disk_request import DiskVerb
from predrain.data.ids import DeviceId, HostName
from predrain.service.config.self_tests_table import SelfTestsTable
from predrain.service.disk_requests.self_test_schedule import (
    ScheduleKey,
    SelfTestPeriods,
    compute_period_number,
    list_due_tests,
    request_due_tests,
)
from tests.service.asking_host import Host
from tests.service.conftest import NOON, Site
from tests.service.test_worker import work

WEEK, DAY, HOUR = timedelta(weeks=1), timedelta(days=1), timedelta(hours=1)
FLEET = [DeviceId(f"A_B_{number}") for number in range(700)]
WEEKLY = SelfTestPeriods(WEEK, None)


def play(fleet: list[DeviceId], periods: SelfTestPeriods, hours: int) -> Counter[tuple[DiskVerb, int]]:
    """Take every due test at once; return how many there were by verb and hour."""
    done: dict[ScheduleKey, int] = {}
    found: Counter[tuple[DiskVerb, int]] = Counter()
    lengths = dict(periods.list_verbs())
    for hour in range(hours):
        now = NOON + hour * HOUR
        turn = list_due_tests(fleet, periods, done, now)
        done |= turn.begun
        for verb, device in turn.due:
            done[verb, device] = compute_period_number(device, lengths[verb], now)
            found[verb, hour] += 1
    return found


def test_a_new_schedule_tests_each_disk_once_within_the_first_period() -> None:
    found = play(FLEET, WEEKLY, 24 * 7 + 1)
    assert found.total() == len(FLEET)


def test_the_tests_are_spread_over_the_period() -> None:
    found = play(FLEET, WEEKLY, 24 * 7 + 1)
    assert max(found.values()) < 20  # 700 disks over 168 hours are four an hour
    days = Counter(hour // 24 for _, hour in found.elements())
    assert min(days[day] for day in range(7)) > 60


def test_no_disk_has_both_tests_at_the_same_look() -> None:
    done: dict[ScheduleKey, int] = dict.fromkeys([(verb, FLEET[0]) for verb in DiskVerb], 0)
    both = SelfTestPeriods(WEEK, 4 * WEEK)
    assert list_due_tests(FLEET[:1], both, done, NOON).due == ((DiskVerb.LONG_TEST, FLEET[0]),)


def test_without_settings_nothing_is_due() -> None:
    off = SelfTestPeriods.from_table(SelfTestsTable())
    assert list_due_tests(FLEET, off, {}, NOON).due == ()
    assert off.list_verbs() == ()


@given(st.lists(st.integers(0, 24 * 40), max_size=30).map(sorted), st.sampled_from(FLEET))
def test_a_period_has_one_test_at_most_however_seldom_one_looks(hours: list[int], device: DeviceId) -> None:
    done: dict[ScheduleKey, int] = {}
    tested: list[int] = []
    for hour in hours:
        now = NOON + hour * HOUR
        turn = list_due_tests([device], WEEKLY, done, now)
        done |= turn.begun
        for key in turn.due:
            done[key] = compute_period_number(device, WEEK, now)
            tested.append(done[key])
    assert len(tested) == len(set(tested))


def test_a_clock_that_was_set_back_repeats_no_test() -> None:
    number = compute_period_number(FLEET[0], WEEK, NOON)
    turn = list_due_tests([FLEET[0]], WEEKLY, {(DiskVerb.SHORT_TEST, FLEET[0]): number + 9}, NOON)
    assert turn.due == ()
    assert turn.begun == {(DiskVerb.SHORT_TEST, FLEET[0]): number}


def test_the_schedule_asks_one_disk_of_a_host_at_a_time_and_stops_at_a_halt(
    site: Site, tmp_path: Path
) -> None:
    desk, application, name = site.application.disk_requests, site.application, HostName("stor-01")
    host = Host(tmp_path / "host", application.clock, desk.derive_key(name), str(site.client.base_url))
    application.ingest(host.readings)
    work(application)
    table = SelfTestsTable(short_days=1)

    def look() -> int:
        host.ask_until_idle()
        return request_due_tests(
            application.store, desk, application.get_snapshot(), table, application.clock.now()
        )

    assert look() == 0  # the first poll begins the periods
    application.clock.sleep(DAY.total_seconds())
    application.halt("storm", "anna")
    assert look() == 0
    application.halt(None, "anna")
    assert look() == 1
    assert look() == 0  # the first test runs
    for path in ("/dev/sda", "/dev/sdb"):
        if host.fake.is_tested(path):
            host.fake.end_test(path)
            host.watch.self_tests.clear()
            host.memory.forget_test(host.device(path))
    assert look() == 1
    host.ask_until_idle()
    assert len(host.asked_tests()) == 2
    ended = [
        desk.view(application.get_snapshot(), host.device(path)).ended for path in ("/dev/sda", "/dev/sdb")
    ]
    assert {one.request.by for each in ended for one in each} == {"schedule"}
