"""Hosts that deliver: each has a spool with a witness. Some have a collector, others read thousands of made-up ones."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec

from predrain.data.ids import HostName
from tests.chaos.cabinet import Cabinet
from tests.chaos.load import LoadOrder, read_began
from tests.chaos.program import Program
from tests.chaos.witness import count_accepted, read_numbers, read_witness
from tests.collector.latency.fake_osd import FakeOsd, answers_of, looks

OSDS = 2
"""The number of OSDs on each host with a collector."""
SPOOL_DISK_BYTES = 32 << 20
_STATE = """
[service]
state = "{state}"
"""
_COLLECTOR = """
[collector]
host = "{host}"
smartctl = "{smartctl}"
smartctl_timeout_seconds = 3
parallel = 4
sample_seconds = 5
{delivery}
"""
_ENDING_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Delivery:
    """The settings by which a host delivers: lines of `[collector]`, and whole tables."""

    of_collector: str = ""
    tables: str = ""


class SpoolHost:
    """A host of which only the spool, the witness and the process count. Its files lie in `folder`."""

    def __init__(self, folder: Path, name: str, module: str) -> None:
        self.name = HostName(name)
        self.folder = folder / name
        self.folder.mkdir()
        self._state = self.folder / "state"
        self._state.mkdir()
        self.program = Program([sys.executable, "-m", module, self.folder], self.folder / "host.log")

    @property
    def spool(self) -> Path:
        """The file of its spool."""
        return self._state / "collector.sqlite"

    @property
    def settings(self) -> Path:
        """Return the path of the settings by which the host delivers."""
        return self.folder / "predrain.toml"

    def witnessed(self) -> list[tuple[bytes, str]]:
        """Readings that the spool accepted before the eyes of a witness, by their digests."""
        return read_witness(self.folder)

    def numbers(self) -> dict[str, int]:
        """Return the numbers that the spool keeps, such as its counts, by their names."""
        return read_numbers(self.spool)

    def count_accepted(self) -> int:
        """Readings that the spool ever accepted."""
        return count_accepted(self.spool)

    def close(self) -> None:
        """Nothing of it is left running."""
        self.program.kill()

    def _configure(self, delivery: Delivery, smartctl: Path) -> None:
        collector = _COLLECTOR.format(host=self.name, smartctl=smartctl, delivery=delivery.of_collector)
        self.settings.write_text(_STATE.format(state=self._state) + collector + delivery.tables)


class LoadHost(SpoolHost):
    """A process that reads `drives` made-up drives, so many readings a second in all."""

    def __init__(
        self, folder: Path, number: int, drives: int, readings_per_second: float, delivery: Delivery
    ) -> None:
        super().__init__(folder, f"load-{number}", "tests.chaos.load")
        self._order = LoadOrder(self.name, drives, readings_per_second)
        (self.folder / "load.json").write_bytes(msgspec.json.encode(self._order))
        self._configure(delivery, Path("smartctl"))

    def count_due(self, now: float) -> int:
        """Readings that were due by `now`, in seconds since 1970."""
        began = read_began(self.folder)
        return 0 if began is None else self._order.count_due(now - began)


class CollectorHost(SpoolHost):
    """An OSD host: its drives, its OSDs, and its collector, whose spool lies on a small disk of its own as root."""

    def __init__(self, folder: Path, number: int, drives: int, delivery: Delivery, random: Random) -> None:
        super().__init__(folder, f"chaos-{number}", "tests.chaos.host")
        self.cabinet = Cabinet(self.folder, f"H{number}", drives, random)
        self.mounted = os.geteuid() == 0 and _mounted(self._state)
        """Whether its spool has a disk of its own, which can be filled without harm to others: root is needed."""
        sockets = self.folder / "run/ceph"
        sockets.mkdir(parents=True)
        answers = answers_of(looks("reef")[1])
        numbers = range(number * OSDS, (number + 1) * OSDS)
        self._osds = [FakeOsd(sockets / f"ceph-osd.{osd}.asok", answers) for osd in numbers]
        self._configure(delivery, self.cabinet.program)

    def fill_disk(self) -> None:
        """Fill the spool's disk, so that no more bytes can be written to it. The disk must be `mounted`.

        The spool's files have free room inside that was used before, and that room would last for minutes. The
        collector is therefore started again on files without free room.
        """
        self.program.kill()
        sqlite3.connect(self.spool).execute("VACUUM").connection.close()
        before = len(self.witnessed())
        self.program.start()
        end = time.monotonic() + _ENDING_SECONDS
        while len(self.witnessed()) == before and time.monotonic() < end:
            time.sleep(0.1)
        with (self._state / "filler").open("wb", buffering=0) as filler:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        filler.write(b"\0" * size)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free_disk(self) -> None:
        """There is room again."""
        (self._state / "filler").unlink()

    def close(self) -> None:
        """Nothing of it is left running or mounted."""
        super().close()
        for osd in self._osds:
            osd.stop()
        self.cabinet.close()
        if self.mounted:
            subprocess.run(["umount", "--lazy", self._state], check=False)


def _mounted(folder: Path) -> bool:
    size = f"size={SPOOL_DISK_BYTES}"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "chaos", folder], check=False, capture_output=True
    )
    return done.returncode == 0
