"""I/O errors of one disk are the disk's; those of several disks of one host at once are the host's."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from predrain.data.ids import DeviceId, HostName
from predrain.data.log.memory_log import MemoryLog
from predrain.data.outlook import Advice, Status
from predrain.data.reading import Reading
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.host_errors import HostErrors
from tests.service.conftest import NOON, smart_reading
from tests.service.test_shared_worker import put, worker_on


def reading(disk: str, minutes: float = 0, errors: int = 400, host: str = "h") -> Reading:
    one = smart_reading(disk, NOON + timedelta(minutes=minutes))
    return replace(one, device=DeviceId(disk), host=HostName(host), kernel_errors=errors)


def mark(hosts: HostErrors, *readings: Reading) -> list[bool]:
    return [one.kernel_errors_shared for one in hosts.mark_shared(readings)]


def test_errors_of_two_disks_are_theirs_and_of_three_the_hosts() -> None:
    assert mark(HostErrors(), reading("A"), reading("B", 1)) == [False] * 2
    assert mark(HostErrors(), reading("A"), reading("B", 1), reading("C", 2)) == [True] * 3


def test_a_disk_of_the_host_without_errors_is_not_among_them() -> None:
    readings = [reading("A"), reading("B", 1), reading("C", 2), reading("D", 3, errors=0)]
    assert mark(HostErrors(), *readings) == [True, True, True, False]
    assert mark(HostErrors(), *readings[:2], readings[3]) == [False] * 3


def test_errors_of_other_hosts_and_of_other_hours_are_not_at_once() -> None:
    assert mark(HostErrors(), reading("A"), reading("B"), reading("C", host="g")) == [False] * 3
    assert mark(HostErrors(), reading("A"), reading("B", 61), reading("C", 122)) == [False] * 3


def test_one_disk_that_is_read_often_is_one_disk() -> None:
    assert mark(HostErrors(), *(reading("A", minute) for minute in range(9))) == [False] * 9


def test_disks_whose_readings_come_one_by_one_are_found_from_the_third_on() -> None:
    hosts = HostErrors()
    assert [mark(hosts, reading(disk, 10 * place))[0] for place, disk in enumerate("ABCD")] == [
        False,
        False,
        True,
        True,
    ]


def test_the_remembered_errors_of_a_host_stay_bounded() -> None:
    hosts = HostErrors()
    for hour in range(500):
        mark(hosts, *(reading(disk, 60 * hour) for disk in "ABC"))
    assert len(hosts._seen[HostName("h")]) <= 9


def test_a_host_whose_controller_fails_is_told_of_each_of_its_disks_and_one_disk_alone_by_itself(
    tmp_path: Path,
) -> None:
    log, store = MemoryLog(), SqliteStore(tmp_path / "s.db")
    worker = worker_on(log, store, BundledForecaster.load())
    alone = reading("Z", host="other")
    put(log, [reading("A"), reading("B", 1), reading("C", 2), alone])
    worker.step()
    told = {device: store.outlooks(DeviceId(device))[-1] for device in "ABCZ"}
    assert {told[device].advice for device in "ABC"} == {Advice.CHECK_CABLE}
    assert {told[device].reasons[0].code for device in "ABC"} == {"io-errors-shared"}
    assert (told["Z"].status, told["Z"].advice) == (Status.WARNING, Advice.SELF_TEST)
