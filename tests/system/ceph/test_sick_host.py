"""A host of 24 disks of every kind beside real OSDs: a real collector, a real service, and nothing sick is left out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from predrain.collector.disks import DiskPath
from predrain.data.ids import DeviceId, OsdId
from predrain.data.latency_windows import LatencySummary
from predrain.data.outlook import Status
from predrain.data.reading import Reading, Role, Smart, Unreadable
from predrain.data.store.sqlite_store import SqliteStore
from tests.collector.fake_smartctl import Disk, FakeSmartctl, How, every_kind
from tests.deadlines import idle_seconds
from tests.system.ceph.conftest import Start
from tests.system.ceph.minicluster import MiniCluster

ROOT = Path(__file__).resolve().parents[3]
PREDRAIN = (sys.executable, "-c", "from predrain.service.cli import run; run()")
pytestmark = pytest.mark.slow
PATIENCE = 240.0
RISK = ("bad", "warning", "unknown", "good")
"""The order of the page."""

# $1 the cluster's folder, then the command: sockets where a host with the classic layout has them, and the folder of
# osd.0; osd.1 has none here, as under Rook.
HOST = """set -e
folder=$1; shift
mount -t tmpfs tmpfs /run; mkdir /run/ceph
mount -t tmpfs tmpfs /var/lib/ceph
mkdir -p /var/lib/ceph/osd/ceph-0; mount --bind "$folder/osd/0" /var/lib/ceph/osd/ceph-0
for osd in 0 1; do ln -s "$folder/run/osd.$osd.asok" "/run/ceph/ceph-osd.$osd.asok"; done
exec "$@"
"""

HEALTHY, WORN = 0, 1
"""Places among the 24 of the disks that the two OSDs lie on: one well, one with 304 reallocated sectors."""
MODELS = {HEALTHY: ("WDC_WD1003FBYZ-010FB0", "FAKE0000"), WORN: ("ST3500418AS", "FAKE0001")}
"""The models and serial numbers that udev reports for these disks, and that Ceph names them by."""
TURNS: dict[str, How] = {
    "/dev/sdc": "hang",
    "/dev/sdd": "garbage",
    "/dev/sde": "stubborn",
    "/dev/sdf": "asleep",
    "/dev/sdj": "vanish",
    "/dev/bus/0 megaraid,9": "hang",
    "/dev/nvme3": "mute",
}
"""The later behaviour of disks that answered at first."""
PULLED = "/dev/sdg"
"""A disk that is listed no more. Another host may have it: it is judged again after three rounds, and not here."""
FAILED = "/dev/sdy"
"""A drive on a USB bridge that says so itself."""
EVER = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass
class SickHost:
    """The host: its drives, its OSDs, and the service that it delivers to."""

    cluster: MiniCluster
    fake: FakeSmartctl
    folder: Path
    url: str = ""

    @property
    def state(self) -> Path:
        return self.folder / "service"

    @contextmanager
    def serving(self) -> Iterator[None]:
        """`predrain up`, which looks at the cluster too."""
        conf, keyring, name = self.cluster.where()
        python = ", ".join(json.dumps(part) for part in self.cluster.interpreter())
        config = self.folder / "up.toml"
        config.write_text(
            f'[ceph]\nconf = "{conf}"\nkeyring = "{keyring}"\nname = "{name}"\npython = [{python}]\n'
        )
        said = self.folder / "up.txt"
        with said.open("wb") as out:
            process = subprocess.Popen(
                [*PREDRAIN, "up", "--port", "0", "--state", str(self.state), "--config", str(config)],
                stderr=out, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
        try:
            wait_for(lambda: b"answers at" in said.read_bytes(), "the service answering", [process])
            self.url = said.read_text().splitlines()[0].rpartition(" ")[2]
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    @contextmanager
    def collecting(self) -> Iterator[subprocess.Popen[bytes]]:
        """`predrain collect` on this host."""
        config = self.folder / "collect.toml"
        keys = {
            "url": self.url, "token_file": str(self.state / "token"), "smartctl": self.fake.program,
            "host": "stor-01", "smartctl_timeout_seconds": 5, "parallel": 8,
            "reading_interval_minutes": 1, "sample_seconds": 5,
        }  # fmt: skip
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())
        config.write_text(f'[service]\nstate = "{self.folder / "collector"}"\n[collector]\n{lines}\n')
        entered = ["unshare", "--mount", "--propagation", "private", "sh", "-c", HOST, "sh"]
        command = [*entered, str(self.cluster.folder), *PREDRAIN, "collect", "--config", str(config)]
        with (self.folder / "collect.txt").open("ab") as out:
            process = subprocess.Popen(command, stderr=out, cwd=ROOT)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def turn(self) -> None:
        """Some drives fall silent, each in its own way."""
        drives = {place_of(drive): drive for drive in self.fake.disks}
        self.fake.plug(*(replace(drives[place], how=how) for place, how in TURNS.items()))
        self.fake.unplug(PULLED, drives[PULLED].type)

    def get(self, noun: str) -> Any:
        """Return the answer of REST to a person's request."""
        token = (self.state / "token").read_text().strip()
        answer = httpx2.get(
            f"{self.url}/api/v1/{noun}", headers={"Authorization": f"Bearer {token}"}, timeout=30
        )
        assert answer.status_code == 200, answer.text
        return answer.json()


def wait_for(true: Callable[[], object], what: str, alive: Sequence[subprocess.Popen[bytes]] = ()) -> None:
    """Wait until it holds. Fails when it takes too long, or when one who is to bring it about has ended."""
    ends = idle_seconds() + PATIENCE
    while not true():
        assert idle_seconds() < ends, f"{what}: not in {PATIENCE:.0f} s"
        assert all(process.poll() is None for process in alive), f"{what}: the process has ended"
        time.sleep(0.2)


def place_of(drive: Disk) -> str:
    """Return the place of the drive as the collector writes it."""
    return DiskPath(drive.path, drive.type).place


def reading_of(store: SqliteStore, drive: Disk) -> Reading:
    """The newest one of a drive."""
    (found,) = (one for device, one in store.latest_readings().items() if device.endswith(str(drive.serial)))
    return found


@dataclass(frozen=True)
class Told:
    """The data that the service had at the end."""

    drives: dict[str, DeviceId]
    """Device ids by place."""
    devices: list[dict[str, Any]]
    outlooks: list[dict[str, Any]]
    readings: dict[DeviceId, Reading]
    latencies: dict[int, tuple[LatencySummary, ...]]
    said: str
    """The output of the collector."""


def made(start: Start, folder: Path) -> SickHost:
    """Two OSDs on disks with SMART, and 22 other drives."""
    cluster = start(hosts=2, store="loop", size_gib=1)
    cluster.pool("rep", pg_num=8, size=2)
    loops: dict[int, str] = dict(zip((HEALTHY, WORN), cluster.devices.attached(), strict=True))
    # The slots of controllers are listed here: to sweep them needs a /sys that shows the controllers.
    drives = [
        replace(drive, path=loops.get(number, drive.path), listed=True)
        for number, drive in enumerate(every_kind())
    ]
    for osd, number in enumerate((HEALTHY, WORN)):
        cluster.fake_device(osd, *MODELS[number])
        cluster.restart(f"osd.{osd}")
    cluster.wait(lambda: cluster.osds() == [0, 1], 60, "the OSDs back")
    cluster.wait_clean()
    return SickHost(cluster, FakeSmartctl(folder / "fake", drives), folder)


@pytest.fixture(scope="module")
def told(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """All drives answer; the collector is killed, a third of the drives turns bad, and it starts again."""
    host = made(start, tmp_path_factory.mktemp("stor-01"))
    with host.serving(), closing(SqliteStore(host.state / "store.sqlite")) as store:
        with host.collecting() as process:
            wait_for(lambda: len(store.latest_outlooks()) == 24, "24 outlooks", [process])
            process.kill()
        drives = {place_of(drive): reading_of(store, drive).device for drive in host.fake.disks}
        host.turn()
        silent = {drives[place] for place, how in TURNS.items() if how != "asleep"}

        def done() -> bool:
            host.cluster.write("rep", objects=5, size=4096)
            latest = store.latest_outlooks()
            counted = [
                sum(one.operations for one in store.read_latency_summaries(osd, EVER)) for osd in (0, 1)
            ]
            return all(counted) and all(latest[device].status is Status.BAD for device in silent)

        with host.collecting() as process:
            wait_for(done, "two failed rounds and a minute of latencies", [process])
        yield Told(
            drives,
            host.get("devices")["items"],
            host.get("outlooks")["items"],
            dict(store.latest_readings()),
            {osd: store.read_latency_summaries(osd, EVER) for osd in (0, 1)},
            (host.folder / "collect.txt").read_text(),
        )


def test_every_disk_of_a_sick_host_has_an_outlook_the_sick_ones_first(told: Told) -> None:
    assert {one["device"] for one in told.devices} == set(told.drives.values())
    assert len(told.devices) == 24
    here = [one for one in told.outlooks if one["device"] != told.drives[PULLED]]
    by_risk = sorted(here, key=lambda one: (RISK.index(one["status"]), -(one["p_fail_30d"] or 0)))
    sick = {told.drives[place] for place in (*TURNS, FAILED) if TURNS.get(place) != "asleep"}
    assert {one["device"] for one in by_risk[: len(sick)]} == sick
    assert [one["status"] for one in by_risk[: len(sick)]] == ["bad"] * len(sick)
    assert all(one["status"] != "bad" for one in by_risk[len(sick) :])
    assert all(one["reasons"][0]["sentence"] for one in told.outlooks)


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("/dev/sdc", "smartctl did not answer within 5 s"),
        ("/dev/sdd", "smartctl's answer "),
        ("/dev/sde", "smartctl did not answer within 5 s"),
        ("/dev/sdj", "smartctl was ended by signal 9"),
        ("/dev/bus/0 megaraid,9", "smartctl did not answer within 5 s"),
    ],
)
def test_a_disk_that_fell_silent_says_why(told: Told, place: str, why: str) -> None:
    seen = told.readings[told.drives[place]].seen
    assert isinstance(seen, Unreadable)
    assert seen.why.startswith(why)
    (outlook,) = (one for one in told.outlooks if one["device"] == told.drives[place])
    assert "probes failed" in outlook["reasons"][0]["sentence"]


def test_a_disk_that_was_pulled_says_so(told: Told) -> None:
    seen = told.readings[told.drives[PULLED]].seen
    assert isinstance(seen, Unreadable)
    assert seen.why.startswith("/dev/sdg is listed no more")


def test_a_sleeping_disk_keeps_the_outlook_that_it_had(told: Told) -> None:
    assert isinstance(told.readings[told.drives["/dev/sdf"]].seen, Smart)


def test_the_seat_of_an_osd_is_on_its_disk_and_ceph_calls_the_disk_by_the_same_name(told: Told) -> None:
    seats = {
        device: [(one.osd, one.role) for one in reading.osd_devices]
        for device, reading in told.readings.items()
        if reading.osd_devices
    }
    named = {"_".join(MODELS[number]): [(OsdId(osd), Role.DATA)] for osd, number in enumerate(MODELS)}
    assert seats == named
    assert {one["device"]: one["osds"] for one in told.devices if one["osds"]} == {
        device: [osd] for osd, device in enumerate(named)
    }


def test_the_latencies_of_its_osds_arrive_beside(told: Told) -> None:
    for osd, summaries in told.latencies.items():
        assert {(one.osd, one.host) for one in summaries} == {(osd, "stor-01")}
        last = summaries[-1]
        assert last.write_ms_p50
        assert last.device_await_ms
        assert last.backfills_max


def test_nobody_is_shown_a_traceback(told: Told) -> None:
    assert "Traceback" not in told.said
