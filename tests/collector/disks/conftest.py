"""A watch over fake drives, with a clock that can jump."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from predrain.collector.disks import DiskWatch, DiskWatchLimits, Smartctl
from predrain.data.ids import HostName
from predrain.data.reading import OsdDevice, Reading, Smart, Unreadable
from tests.collector.fake_smartctl import Disk, FakeSmartctl


class JumpingClock:
    """The machine's clock, `ahead` of itself."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def sleep(self, seconds: float) -> None:
        self.ahead += timedelta(seconds=seconds)


@dataclass
class Host:
    """One host: its drives, its root folder, and watches over it."""

    folder: Path
    smartctl: FakeSmartctl
    clock: JumpingClock = field(default_factory=JumpingClock)
    osd_devices: dict[str, tuple[OsdDevice, ...]] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    sudo: str | None = None

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def watch(
        self, seconds: float = 20, *, parallel: int = 4, spread: float = 0, program: str = ""
    ) -> DiskWatch:
        """A watch as after a start of the collector."""
        return DiskWatch(
            Smartctl(program or self.smartctl.program, self.sudo),
            self.clock,
            HostName("node1"),
            find_osds_on=lambda device: self.osd_devices.get(device, ()),
            kernel_errors=self.errors.get,
            random=Random(1),
            limits=DiskWatchLimits(parallel, seconds, spread),
            state=self.folder / "state" / "disks.json",
            root=self.root,
        )


@pytest.fixture
def host(tmp_path: Path) -> Callable[[Iterable[Disk]], Host]:
    """Build a host with these drives."""
    return lambda disks: Host(tmp_path, FakeSmartctl(tmp_path / "fake", disks))


def by_device(watch: DiskWatch) -> dict[str, Reading]:
    """One round; each device at most once."""
    readings = list(watch.read_disks())
    found = {str(reading.device): reading for reading in readings}
    assert len(found) == len(readings)
    return found


ALPHA = Disk("/dev/sda", sample="ata-001", serial="ALPHA", wwn=1)
BETA = Disk("/dev/sdb", sample="ata-026", serial="BETA", wwn=2)
A, B = "WDC_WD1003FBYZ-010FB0_ALPHA", "ST3500418AS_BETA"
"""Their device ids."""


def smart_of(reading: Reading) -> Smart:
    """Return the SMART state in a reading of a drive that answered."""
    assert isinstance(reading.seen, Smart)
    return reading.seen


def unreadable_of(reading: Reading) -> Unreadable:
    """Return the failure in a reading of a drive that could not be read."""
    assert isinstance(reading.seen, Unreadable)
    return reading.seen
