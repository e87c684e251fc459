"""A host's OSDs, watched through stand-ins that answer what real ones did: windows, restarts, clocks, faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from predrain.collector.latency import LatencyWatch, LatencyWatchLimits, SocketsUnreadable
from predrain.data.ids import HostName, OsdId, OsdKey
from predrain.data.latency_windows import LatencySummary
from predrain.data.wire import accept_latency
from tests.collector.latency.fake_osd import RELEASES, FakeOsd, answers_of, garbage, looks

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOST = HostName("stor-01")


class Host:
    """A host with OSDs on disks `sda`, `sdb`, ..; `tick` lets time pass and samples once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.time, self.osds = folder, NOON, dict[OsdId, FakeOsd]()
        self.disks(0)
        self.refused: Exception | None = None
        self.watch = LatencyWatch(
            self._sockets, lambda osd: ("dm-9", f"sd{'abc'[osd.osd]}"), self, HOST,
            diskstats=folder / "diskstats", limits=LatencyWatchLimits(seconds=0.5),
        )  # fmt: skip

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)

    def _sockets(self) -> dict[Path, OsdKey]:
        if self.refused:
            raise self.refused
        return {fake.path: OsdKey(None, osd) for osd, fake in self.osds.items()}

    def add(self, osd: int, release: str = "reef") -> FakeOsd:
        path = self.folder / f"ceph-osd.{osd}.asok"
        return self.osds.setdefault(OsdId(osd), FakeOsd(path, answers_of(looks(release)[0])))

    def disks(self, operations: int, *, waited_ms: int = 0, in_flight_ms: int = 0) -> None:
        """Each disk has done this much since it appeared."""
        rows = [f"8 0 sd{name} {operations} 0 0 {waited_ms} 0 0 0 0 0 0 {in_flight_ms}\n" for name in "abc"]
        (self.folder / "diskstats").write_text("".join(rows))

    def tick(self, times: int = 1, seconds: float = 12) -> None:
        for _ in range(times):
            self.watch.sample()
            self.sleep(seconds)

    def window(self) -> dict[int, LatencySummary]:
        """Go on until a window is over; by OSD."""
        while not (told := self.watch.take_summaries()):
            self.tick()
        for summary in told:
            assert accept_latency(summary, max(self.time, NOON)) == summary
        return {summary.osd: summary for summary in told}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    for fake in made.osds.values():
        fake.stop()


def grown(release: str = "reef") -> dict[str, bytes]:
    """Return an OSD's answers at the second recorded poll; `between` counts the operations since the first poll."""
    return answers_of(looks(release)[1])


def between(release: str = "reef") -> int:
    first, second = looks(release)
    kinds = ("op_r_latency", "op_w_latency", "op_rw_latency")
    return sum(int(second[kind]["avgcount"]) - int(first[kind]["avgcount"]) for kind in kinds)


def commit_ms(release: str) -> float:
    first, second = (
        json.loads(answers_of(look)["perf dump:bluestore"])["bluestore"] for look in looks(release)
    )
    name = "commit_lat" if release == "pacific" else "txc_commit_lat"
    count = second[name]["avgcount"] - first[name]["avgcount"]
    return float(1000 * (second[name]["sum"] - first[name]["sum"]) / count)


@pytest.mark.parametrize("release", RELEASES)
def test_a_window_holds_what_was_done_in_it_on_every_release(host: Host, release: str) -> None:
    host.add(0, release)
    host.tick(2)
    host.osds[OsdId(0)].answers = grown(release)
    host.disks(600, waited_ms=4800, in_flight_ms=30_000)
    told = host.window()[0]
    assert (told.window_start, told.window_seconds, told.host) == (NOON, 60, HOST)
    assert told.operations == between(release)
    assert told.read_ms_p50
    assert told.read_ms_p99
    assert told.write_ms_p50
    assert told.write_ms_p99
    assert told.read_ms_p50 <= told.read_ms_p99
    assert told.write_ms_p50 <= told.write_ms_p99
    assert told.commit_ms_p50 == told.commit_ms_p99 == pytest.approx(commit_ms(release))
    assert (told.device_await_ms, told.iops, told.queue) == (8, 10, 0.5)
    assert (told.slow_ops, told.backfills_max, told.recovering, told.scrubbing) == (0, 1, False, False)
    assert host.watch.trouble == {}


def test_windows_follow_each_other_without_a_gap_and_count_nothing_twice(host: Host) -> None:
    host.add(0)
    host.tick(5)
    host.osds[OsdId(0)].answers = grown()
    told = [host.window()[0], host.window()[0], host.window()[0]]
    assert [one.window_start for one in told] == [NOON + timedelta(minutes=minute) for minute in range(3)]
    assert sum(one.operations for one in told) == between()


def test_an_osd_at_rest_has_operations_0_and_no_latencies(host: Host) -> None:
    host.add(0)
    told = host.window()[0]
    assert told.operations == 0
    assert (told.iops, told.queue) == (0, 0)
    latencies = (told.read_ms_p50, told.read_ms_p99, told.write_ms_p50, told.write_ms_p99, told.commit_ms_p50,
                 told.commit_ms_p99, told.device_await_ms)  # fmt: skip
    assert set(latencies) == {None}


def test_a_restart_is_not_bridged_even_where_every_counter_is_higher_after_it(host: Host) -> None:
    fake = host.add(0)
    host.tick(2)
    fake.stop()
    fake.path.unlink()
    fake.answers = grown()
    fake.start()
    assert host.window()[0].operations == 0


def test_counters_that_were_reset_are_not_bridged(host: Host) -> None:
    fake = host.add(0)
    fake.answers = grown()
    host.tick(2)
    fake.answers = answers_of(looks("reef")[0])
    host.tick()
    fake.answers = grown()
    assert host.window()[0].operations == between()


def test_a_sample_that_is_missed_loses_no_operation(host: Host) -> None:
    fake = host.add(0)
    host.tick(2)
    fake.fault = garbage
    host.tick()
    fake.fault, fake.answers = None, grown()
    told = host.window()[0]
    assert (told.operations, told.window_seconds) == (between(), 60)


def test_an_osd_that_comes_back_after_longer_than_a_window_starts_anew(host: Host) -> None:
    fake, _ = host.add(0), host.add(1)
    host.tick(2)
    fake.fault = garbage
    host.tick(9)
    fake.fault, fake.answers = None, grown()
    host.watch.take_summaries()
    told = host.window()
    assert told[0].operations == 0
    assert told[0].window_seconds < told[1].window_seconds


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_clock_that_jumps_starts_new_windows_and_makes_none_of_the_jump(host: Host, seconds: float) -> None:
    host.add(0)
    host.tick(3)
    host.sleep(seconds)
    after = host.time
    host.osds[OsdId(0)].answers = grown()
    cut, whole = host.window()[0], host.window()[0]
    assert (cut.window_start, cut.window_seconds) == (NOON, 24)
    assert (whole.window_start, whole.window_seconds) == (after, 60)
    assert cut.operations == whole.operations == 0


def test_ticks_that_are_a_little_early_still_make_minutes(host: Host) -> None:
    host.add(0)
    host.tick(6, seconds=11.95)
    assert [one.window_seconds for one in host.watch.take_summaries()] == [pytest.approx(59.75)]


@pytest.mark.slow
def test_osds_that_fail_each_in_its_way_are_named_and_the_others_have_their_window(host: Host) -> None:
    hung, spoilt, _ = host.add(0), host.add(1), host.add(2)
    hung.fault, spoilt.fault = hung.hold, garbage
    assert set(host.window()) == {2}
    assert set(host.watch.trouble) == {str(hung.path), str(spoilt.path)}
    assert host.watch.trouble[str(hung.path)].startswith(
        f"the admin socket of osd.0, {hung.path}, has not answered"
    )
    assert host.watch.trouble[str(spoilt.path)].startswith(f"osd.1 behind {spoilt.path} tells no latencies (")
    hung.fault = spoilt.fault = None
    host.tick()
    assert host.watch.trouble == {}


def test_sockets_that_cannot_be_looked_up_are_trouble_and_no_crash(host: Host) -> None:
    host.add(0)
    host.refused = SocketsUnreadable("run/ceph may not be read: become ceph")
    host.tick(6)
    assert host.watch.trouble == {"sockets": "run/ceph may not be read: become ceph"}
    assert host.watch.take_summaries() == ()


OTHER = "451267e6-883f-4936-8dff-080d781c67d5"
FSID = "6b1f4c1e-6f0d-11ee-9a7c-0050569a3c11"


def test_an_osd_names_its_cluster_once_and_its_windows_carry_it(host: Host) -> None:
    fake = host.add(0)
    fake.answers["status"] = json.dumps({"cluster_fsid": FSID, "whoami": 0, "state": "active"}).encode()
    assert host.window()[0].cluster == FSID
    assert host.window()[0].cluster == FSID
    assert fake.asked.count("status") == 1


def test_an_osd_that_does_not_name_its_cluster_is_measured_without_one(host: Host) -> None:
    host.add(0)
    assert host.window()[0].cluster is None


def test_an_osd_of_another_cluster_behind_the_socket_has_windows_of_its_own(host: Host) -> None:
    fake = host.add(0)
    fake.answers["status"] = json.dumps({"cluster_fsid": FSID}).encode()
    host.tick(3)
    fake.stop()
    fake.path.unlink()
    fake.start()
    fake.answers["status"] = json.dumps({"cluster_fsid": OTHER}).encode()
    while not (told := host.watch.take_summaries()):
        host.tick()
    assert [(one.osd, one.cluster) for one in told] == [(0, OTHER), (0, FSID)]


def test_pacific_is_asked_for_its_list_of_slow_operations_once_it_has_no_count(host: Host) -> None:
    fake = host.add(0, "pacific")
    fake.answers["dump_blocked_ops"] = b'{"ops":[{},{},{}],"complaint_time":30,"num_blocked_ops":3}'
    assert host.window()[0].slow_ops == 3
    assert fake.asked.count("dump_blocked_ops_count") == 1


def test_the_most_slow_operations_of_any_sample_are_told(host: Host) -> None:
    fake = host.add(0)
    host.tick(2)
    fake.answers["dump_blocked_ops_count"] = b'{"num_blocked_ops":7}'
    host.tick()
    fake.answers["dump_blocked_ops_count"] = b'{"num_blocked_ops":1}'
    assert host.window()[0].slow_ops == 7


def test_an_object_that_was_recovered_between_two_samples_is_recovery(host: Host) -> None:
    fake = host.add(0)
    host.tick(2)
    fake.answers["perf dump:osd"] = b'{"osd":{"recovery_ops":1}}'
    assert host.window()[0].recovering is True


def told_of_disk(host: Host, change: Callable[[], object]) -> LatencySummary:
    host.add(0)
    host.disks(1000, waited_ms=9000, in_flight_ms=9000)
    host.tick(3)
    change()
    return host.window()[0]


def test_a_disk_that_disappears_leaves_what_was_seen_of_it_and_the_osds_latencies(host: Host) -> None:
    told = told_of_disk(host, (host.folder / "diskstats").unlink)
    assert (told.iops, told.window_seconds) == (0, 60)


def test_a_disk_that_was_never_seen_is_unknown_and_not_idle(host: Host) -> None:
    (host.folder / "diskstats").unlink()
    host.add(0)
    told = host.window()[0]
    assert (told.iops, told.queue, told.device_await_ms) == (None, None, None)


def test_a_disk_that_was_plugged_in_anew_is_not_compared_with_the_one_before(host: Host) -> None:
    told = told_of_disk(host, lambda: host.disks(10, waited_ms=50, in_flight_ms=50))
    assert (told.iops, told.device_await_ms) == (0, None)


def test_a_host_without_osds_has_no_latencies_and_no_trouble(host: Host) -> None:
    host.tick(12)
    assert host.watch.take_summaries() == ()
    assert host.watch.trouble == {}
