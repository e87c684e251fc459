"""Latencies as real OSDs tell them: what a window says is what the clients did."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from predrain.actions.cluster.rados_connection import Rados
from predrain.collector.latency import LatencyWatch, LatencyWatchLimits, admin_sockets
from predrain.data.ids import HostName
from predrain.data.latency_windows import LatencySummary
from predrain.data.wire import accept_latency
from tests.system.ceph.conftest import Start
from tests.system.ceph.minicluster import MiniCluster

POOL = "rep"
FIRST = datetime(2026, 3, 1, 12, tzinfo=UTC)


class TwelveSeconds:
    """A clock that moves by itself: each time that is read is 12 s after the one before."""

    def __init__(self) -> None:
        self._looks = 0

    def now(self) -> datetime:
        self._looks += 1
        return FIRST + timedelta(seconds=12 * (self._looks - 1))

    def sleep(self, seconds: float) -> None:
        self._looks += int(seconds / 12)


@pytest.fixture(scope="module")
def looped(start: Start) -> MiniCluster:
    """Three hosts, each OSD on a loop device: a disk that the kernel counts."""
    made = start(hosts=3, store="loop", size_gib=1)
    made.pool(POOL, pg_num=16, size=3)
    made.wait_clean()
    return made


@pytest.fixture
def root(looped: MiniCluster, tmp_path: Path) -> Path:
    """The cluster's sockets where a host with the classic layout has them."""
    folder = tmp_path / "run/ceph"
    folder.mkdir(parents=True)
    for osd in range(3):
        (folder / f"ceph-osd.{osd}.asok").symlink_to(looped.folder / f"run/osd.{osd}.asok")
    return tmp_path


@pytest.fixture
def watch(looped: MiniCluster, root: Path) -> LatencyWatch:
    loops = [Path(device).name for device in looped.devices.attached()]
    return LatencyWatch(
        lambda: admin_sockets(root), lambda osd: (loops[osd.osd],), TwelveSeconds(), HostName("minihost")
    )


@pytest.fixture
def client(looped: MiniCluster) -> Iterator[Rados]:
    opened = Rados(looped.connection())
    yield opened
    opened.close()


def rest_of_window(watch: LatencyWatch) -> dict[int, LatencySummary]:
    """Look on until the window is over; by OSD."""
    while not (told := watch.take_summaries()):
        watch.sample()
    for summary in told:
        assert accept_latency(summary, FIRST + timedelta(hours=1)) == summary
    return {summary.osd: summary for summary in told}


@pytest.mark.release
def test_a_window_counts_the_clients_operations_and_times_them_as_the_clients_did(
    looped: MiniCluster, watch: LatencyWatch, client: Rados
) -> None:
    looped.wait(lambda: all(pg["state"] == "active+clean" for pg in looped.pgs()), 120, "no PG is scrubbed")
    watch.sample()
    waited = sorted(1000 * client.probe(POOL, f"probe.{n}", 4096) for n in range(300))
    watch.sample()
    told = rest_of_window(watch)
    assert watch.trouble == {}
    assert set(told) == {0, 1, 2}
    assert sum(one.operations for one in told.values()) == 600  # each probe writes and reads
    for one in told.values():
        assert (one.window_start, one.window_seconds) == (FIRST, 60)
        assert (one.slow_ops, one.backfills_max, one.recovering, one.scrubbing) == (0, 1, False, False)
        assert one.write_ms_p50
        assert one.write_ms_p99
        assert waited[30] / 10 < one.write_ms_p50 <= 2 * waited[270]  # buckets double
        assert one.write_ms_p50 <= one.write_ms_p99 <= 2 * waited[-1]
        assert one.read_ms_p50
        assert one.read_ms_p50 < one.write_ms_p50  # a read comes from memory, a write waits for three disks
        assert one.commit_ms_p50
        assert one.commit_ms_p50 <= 2 * waited[270]
        assert one.device_await_ms
        assert one.iops
        assert one.iops * 60 >= 100
        assert one.queue


def test_reads_and_writes_are_told_apart(looped: MiniCluster, watch: LatencyWatch) -> None:
    looped.write(POOL, objects=60, size=4096)
    watch.sample()
    looped.read_back(POOL)
    watch.sample()
    told = rest_of_window(watch).values()
    assert sum(one.operations for one in told) >= 120  # each object's size, then its bytes
    assert all(one.read_ms_p50 and one.read_ms_p99 for one in told)
    assert {one.write_ms_p50 for one in told} == {None}


@pytest.mark.release
def test_an_osd_that_was_started_anew_is_counted_from_then_on(
    looped: MiniCluster, watch: LatencyWatch
) -> None:
    looped.write(POOL, objects=100, size=4096)
    watch.sample()
    looped.write(POOL, objects=40, size=4096)
    watch.sample()
    looped.write(
        POOL, objects=200, size=4096
    )  # between the last look at the old process and the first at the new one
    looped.restart("osd.0")
    looped.wait(lambda: looped.osds() == [0, 1, 2], 60, "osd.0 back")
    looped.wait_clean()
    watch.sample()
    looped.write(POOL, objects=30, size=4096)
    watch.sample()
    told = rest_of_window(watch)
    assert 0 < told[0].operations <= 70


@pytest.mark.release
def test_a_frozen_osd_leaves_the_others_their_window_and_is_named(looped: MiniCluster, root: Path) -> None:
    watch = LatencyWatch(
        lambda: admin_sockets(root),
        lambda _: (),
        TwelveSeconds(),
        HostName("minihost"),
        limits=LatencyWatchLimits(seconds=1),
    )
    looped.freeze("osd.1")
    try:
        for _ in range(9):  # more calls than its socket's queue holds
            watch.sample()
    finally:
        looped.thaw("osd.1")
    assert {summary.osd for summary in watch.take_summaries()} == {0, 2}
    (sentence,) = watch.trouble.values()
    assert "the admin socket of osd.1, " in sentence
    assert "has not answered within 1 s: look at the OSD's log and at its disk" in sentence
    looped.wait(lambda: watch.sample() or not watch.trouble, 60, "osd.1 answering again")


@pytest.mark.release
def test_operations_that_wait_for_a_frozen_replica_are_counted_as_slow(
    looped: MiniCluster, root: Path
) -> None:
    watch = LatencyWatch(
        lambda: {path: one for path, one in admin_sockets(root).items() if one.osd != 2}, lambda _: (),
        TwelveSeconds(), HostName("minihost"),
    )  # fmt: skip
    looped.command("config set", who="osd", name="osd_op_complaint_time", value="1")
    looped.command("osd set", key="nodown")
    looped.freeze("osd.2")
    client = looped.agent()
    asked = {"op": "write", "pool": POOL, "objects": 60, "size": 4096, "start": 0}
    writer = threading.Thread(target=client.ask, kwargs=asked)
    writer.start()
    try:
        looped.wait(lambda: slow_ops(watch) > 0, 60, "slow operations in a summary")
    finally:
        looped.thaw("osd.2")
        writer.join()
        client.close()
        looped.command("osd unset", key="nodown")
        looped.command("config rm", who="osd", name="osd_op_complaint_time")


def slow_ops(watch: LatencyWatch) -> int:
    """Return the highest number of slow operations that the next window reports for an OSD."""
    return max(one.slow_ops or 0 for one in rest_of_window(watch).values())


@pytest.mark.release
def test_a_window_in_which_objects_were_recovered_says_so(looped: MiniCluster, watch: LatencyWatch) -> None:
    looped.command("osd set", key="noout")
    looped.kill("osd.1")
    looped.command("osd down", ids=["1"])
    looped.write(POOL, objects=50, size=4096)
    watch.sample()
    looped.spawn("osd.1")
    looped.wait(lambda: looped.osds() == [0, 1, 2], 60, "osd.1 back")
    looped.wait_clean()
    told = rest_of_window(watch)
    looped.command("osd unset", key="noout")
    assert any(one.recovering for one in told.values())


@pytest.mark.release
def test_a_window_in_which_an_osd_scrubbed_says_so(looped: MiniCluster, watch: LatencyWatch) -> None:
    looped.write(POOL, objects=400, size=4096)
    looped.command("config set", who="osd", name="osd_scrub_sleep", value="0.5")
    told: list[LatencySummary] = []
    try:
        for pg in looped.pgs():
            looped.try_command("pg deep-scrub", to="mgr", pgid=pg["pgid"])

        def seen() -> bool:
            watch.sample()
            told.extend(watch.take_summaries())
            return any(one.scrubbing for one in told)

        looped.wait(seen, 60, "a scrub")
    finally:
        looped.command("config rm", who="osd", name="osd_scrub_sleep")
