"""A collector on a host that serves OSDs of two clusters: osd.3 of each has its own disk, latency and window."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from predrain.collector.delivery import Spool
from predrain.collector.latency import LatencyWatch, LatencyWatchLimits, admin_sockets
from predrain.collector.osd_devices import seat_map
from predrain.data.ids import ClusterId, OsdId
from predrain.data.latency_windows import LatencyBatch, LatencySummary
from predrain.data.log.log_port import Topic
from predrain.data.reading import OsdDevice, Reading, Role
from predrain.data.wire import decode_envelope
from predrain.service.config.collector_table import load_collector_settings
from predrain.service.processes import collector_process
from predrain.service.processes.collector_process import CollectorHost
from tests.collector.fake_smartctl import Disk, FakeSmartctl
from tests.collector.latency.fake_osd import FakeOsd, answers_of, looks
from tests.collector.osd_devices.fake_host import FakeHost

ONE = ClusterId("4bfe8b72-5e69-4330-b6c0-4d914db8ab89")
TWO = ClusterId("451267e6-883f-4936-8dff-080d781c67d5")
OSD = OsdId(3)
CLASSIC, CEPHADM = "classic", "cephadm"


@dataclass
class TwoClusters:
    """A host of which osd.3 of cluster ONE is on sda, and osd.3 of cluster TWO on sdb.

    Classic OSDs are those of the clusters that are named `ceph` and `backup`.
    """

    folder: Path
    layouts: tuple[str, str]
    time: datetime = datetime(2026, 3, 10, 12, tzinfo=UTC)
    running: dict[ClusterId, FakeOsd] = field(default_factory=dict)

    def __post_init__(self) -> None:
        host = FakeHost(self.folder / "root")
        places = zip((ONE, TWO), ("ceph", "backup"), ("sda", "sdb"), self.layouts, strict=True)
        for fsid, name, disk, layout in places:
            volume = host.volume(f"vg-{disk}", "block", host.disk(disk))
            osd = host.osd(OSD, cluster=name, fsid=fsid if layout == CEPHADM else "", block=volume)
            (osd / "ceph_fsid").write_text(f"{fsid}\n")
            socket = f"{fsid}/ceph" if layout == CEPHADM else name
            self.start(fsid, host.root / f"run/ceph/{socket}-osd.{OSD}.asok")
        (self.folder / "diskstats").write_text(self.format_diskstats(0))
        smartctl = FakeSmartctl(
            self.folder / "fake",
            [Disk("/dev/sda", serial="ONE", wwn=1), Disk("/dev/sdb", serial="TWO", wwn=2)],
        )
        (self.folder / "predrain.toml").write_text(
            f'[service]\nstate = "{self.folder}"\n[collector]\nsmartctl = "{smartctl.program}"\nhost = "stor-01"\n'
        )
        self.host = CollectorHost(
            load_collector_settings(self.folder / "predrain.toml", {}), Random(1),
            tell=lambda _: None, spread_seconds=0.0,
        )  # fmt: skip
        self.host.latencies = LatencyWatch(
            partial(admin_sockets, host.root), self.host._data_disks, self, self.host.name,
            diskstats=self.folder / "diskstats", limits=LatencyWatchLimits(seconds=0.5),
        )  # fmt: skip
        self.host.rescan()

    def start(self, fsid: ClusterId, path: Path) -> None:
        """Start an OSD, which names its cluster when it is asked."""
        path.parent.mkdir(parents=True, exist_ok=True)
        status = json.dumps({"cluster_fsid": fsid, "whoami": OSD}).encode()
        self.running[fsid] = FakeOsd(path, {**answers_of(looks("reef")[0]), "status": status})

    @staticmethod
    def format_diskstats(operations: int) -> str:
        """Disk sda completes these operations, and disk sdb twice as many."""
        row = "8 0 {} {} 0 0 0 0 0 0 0 0 0 0\n"
        return row.format("sda", operations) + row.format("sdb", 2 * operations)

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)

    def measure(self) -> tuple[LatencySummary, ...]:
        """Sample until a window is over. Only the OSD of cluster ONE gets operations of clients meanwhile."""
        for sample in range(20):
            self.host.latencies.sample()
            if told := self.host.latencies.take_summaries():
                return told
            (self.folder / "diskstats").write_text(self.format_diskstats(600 * (sample + 1)))
            self.running[ONE].answers |= answers_of(looks("reef")[1])
            self.sleep(12)
        raise AssertionError("no window ended")


@pytest.fixture(params=[(CLASSIC, CLASSIC), (CLASSIC, CEPHADM), (CEPHADM, CEPHADM)], ids="-".join)
def two(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoClusters]:
    with TemporaryDirectory() as folder:  # the path of a socket has at most 107 letters
        root = Path(folder) / "root"
        monkeypatch.setattr(collector_process, "seat_map", partial(seat_map, root))
        monkeypatch.setattr(collector_process, "admin_sockets", partial(admin_sockets, root))
        monkeypatch.setattr(collector_process, "_SUDO", None)
        made = TwoClusters(Path(folder), request.param)
        yield made
        made.host.close()
        for osd in made.running.values():
            osd.stop()


def test_each_reading_names_the_osd_of_its_own_cluster(two: TwoClusters) -> None:
    seats = {reading.device[-3:]: reading.osd_devices for reading in two.host.read_disks()}
    assert seats == {
        "ONE": (OsdDevice(OSD, Role.DATA, ONE),),
        "TWO": (OsdDevice(OSD, Role.DATA, TWO),),
    }
    assert two.host.map.trouble == ()


def test_each_osd_has_a_window_of_its_own_with_the_use_of_its_own_disk(two: TwoClusters) -> None:
    windows = {summary.cluster: summary for summary in two.measure()}
    assert {(one.osd, cluster) for cluster, one in windows.items()} == {(OSD, ONE), (OSD, TWO)}
    assert windows[ONE].operations > 0
    assert windows[TWO].operations == 0
    assert (windows[ONE].iops, windows[TWO].iops) == (pytest.approx(50), pytest.approx(100))
    assert two.host.latencies.trouble == {}


def test_an_osd_that_ends_is_told_although_the_other_cluster_has_its_number(two: TwoClusters) -> None:
    two.measure()
    two.running[TWO].stop()
    two.host.latencies.sample()
    (sentence,) = two.host.latencies.trouble.values()
    assert sentence.startswith(f"the admin socket of osd.3, {two.running[TWO].path}, has nobody behind it")


def test_readings_and_latencies_of_both_clusters_leave_the_spool_apart(two: TwoClusters) -> None:
    spool = Spool(two.folder / "spool.sqlite", two.host.name, Random(7))
    spool.accept(tuple(two.host.read_disks()), datetime.now(UTC))
    measured = two.measure()
    spool.accept_latency(measured, two.now())
    batches = []
    for batch in iter(spool.take_batch, None):
        batches.append(batch)
        spool.settle_batch(batch, two.now())
    spool.close()
    records = [(batch.topic, record.value) for batch in batches for record in batch.records]
    readings = [decode_envelope(value, Reading).body for topic, value in records if topic is Topic.READINGS]
    latencies = [
        decode_envelope(value, LatencyBatch).body for topic, value in records if topic is Topic.LATENCY
    ]
    assert {seat for reading in readings for seat in reading.osd_devices} == {
        OsdDevice(OSD, Role.DATA, ONE),
        OsdDevice(OSD, Role.DATA, TWO),
    }
    assert sorted(str(one.cluster) for batch in latencies for one in batch.windows) == sorted([ONE, TWO])
    assert {one.cluster: one for batch in latencies for one in batch.summaries} == {
        one.cluster: one for one in measured
    }


@pytest.mark.parametrize("two", [(CLASSIC, CEPHADM), (CLASSIC, CLASSIC)], indirect=True)
def test_the_socket_that_an_adopted_osd_left_behind_is_no_silent_osd(two: TwoClusters) -> None:
    """`cephadm adopt` starts the OSD with another socket; the classic one stays, with nobody behind it."""
    two.running[ONE].stop()
    two.start(ONE, two.folder / f"root/run/ceph/{ONE}/ceph-osd.{OSD}.asok")
    assert {summary.cluster for summary in two.measure()} == {ONE, TWO}
    assert two.host.latencies.trouble == {}
