"""An OSD host with fake drives whose collector asks a real service over HTTP for work, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random

from predrain.collector.delivery import WebSink
from predrain.collector.disk_requests.request_memory import RequestMemory
from predrain.collector.disk_requests.request_runner import RequestRunner
from predrain.collector.disk_requests.slot_light import SlotLight
from predrain.collector.disk_requests.work_loop import WorkLoop
from predrain.collector.disks import DiskWatch, DiskWatchLimits, Smartctl
from predrain.data.clock import Clock
from predrain.data.disk_request import DiskPermission, WorkAnswer, WorkQuestion
from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Reading
from tests.collector.fake_smartctl import Disk, FakeSmartctl
from tests.service.conftest import INGEST_TOKEN

STOR_01 = HostName("stor-01")
BOTH = (DiskPermission.SELF_TEST, DiskPermission.LOCATE)
SDA = Disk("/dev/sda", sample="ata-001", serial="FAKE0000", wwn=1000)
SDB = Disk("/dev/sdb", sample="ata-026", serial="FAKE0001", wwn=1001)


@dataclass
class Host:
    """The disks of a host, read once. `enclosure`: the folder that holds /sys."""

    folder: Path
    clock: Clock
    key: str | None
    url: str = "http://127.0.0.1:1"
    name: HostName = STOR_01
    allow: Sequence[DiskPermission] = BOTH
    disks: Iterable[Disk] = (SDA, SDB)
    ledctl: str = "/nowhere/ledctl"
    token: str = INGEST_TOKEN
    fake: FakeSmartctl = field(init=False)
    readings: list[Reading] = field(init=False)

    def __post_init__(self) -> None:
        self.fake = FakeSmartctl(self.folder / "fake", self.disks)
        self.start()

    def start(self) -> None:
        """Start the collector, or start it again: what it kept in files is what remains."""
        smartctl = Smartctl(self.fake.program, None)
        limits = DiskWatchLimits(parallel=4, seconds=20.0, spread_seconds=0.0)
        self.watch = DiskWatch(
            smartctl,
            self.clock,
            self.name,
            find_osds_on=lambda _: (),
            kernel_errors=lambda _: None,
            random=Random(1),
            limits=limits,
            state=self.folder / "disks.json",
            root=self.folder / "root",
        )
        self.readings = list(self.watch.read_disks())
        self.memory = RequestMemory(self.folder / "requests.json", self.clock.now())
        light = SlotLight(self.ledctl, None, self.folder / "root")
        self.runner = RequestRunner(
            self.name, self.watch, smartctl, light, self.memory, self.clock, allow=self.allow,
            key=lambda: self.key,
        )  # fmt: skip
        self.answers: list[WorkAnswer] = []
        sink = WebSink(self.url, lambda: self.token)

        def ask(question: WorkQuestion) -> WorkAnswer:
            self.answers.append(sink.ask_for_work(question))
            return self.answers[-1]

        self.work = WorkLoop(
            self.name, self.runner, self.memory, self.watch, ask, Random(1), allow=self.allow,
            has_key=lambda: self.key is not None, stopping=lambda: False,
        )  # fmt: skip

    def ask_until_idle(self) -> None:
        """Ask for work until no report waits."""
        while self.work.step() == 0.0:
            pass

    def device(self, path: str) -> DeviceId:
        """The device id of the disk at a path."""
        return self.watch.places[path]

    def asked_tests(self) -> list[str]:
        """The arguments of smartctl that started or ended tests."""
        return [one for one in self.fake.asked() if one.startswith(("-t", "-X"))]


def plant_slot(root: Path, block: str, slot: str) -> Path:
    """The enclosure's slot of a disk, as the kernel shows it; return the file of its light."""
    enclosure = root / "sys/class/enclosure/0:0:8:0" / slot
    enclosure.mkdir(parents=True)
    (enclosure / "locate").write_text("0\n")
    device = root / "sys/block" / block / "device"
    device.mkdir(parents=True, exist_ok=True)
    (device / f"enclosure_device:{slot}").symlink_to(enclosure)
    return enclosure / "locate"


def later(clock: Clock, seconds: float) -> datetime:
    """Let the clock of a test run on."""
    clock.sleep(seconds)
    return clock.now()
