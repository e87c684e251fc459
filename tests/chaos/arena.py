"""The real things that are broken: a broker, a database, workers and hosts with collectors, each started and killed.

What is started here dies with the thread that started it.
"""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from threading import Lock

from data.ids import HostName
from tests.chaos.cabinet import Cabinet
from tests.collector.latency.fake_osd import FakeOsd, answers_of, looks

PREFIX = "chaos."
OSDS = 2
"""On each host."""
SPOOL_DISK_BYTES = 32 << 20
_SETTINGS = """
[service]
state = "{state}"
[kafka]
bootstrap = ["{kafka}"]
prefix = "{prefix}"
replicas = 1
in_sync = 1
"""
_OF_WORKERS = """
[store]
url = "{database}"
"""
_OF_HOSTS = """
[collector]
host = "{host}"
smartctl = "{smartctl}"
smartctl_seconds = 3
parallel = 4
sample_seconds = 5
"""
_ENDING_SECONDS = 60.0


class Program:
    """A process that is started again and again; what it says is in `log`."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        self._command, self.log = ["setpriv", "--pdeathsig", "KILL", *command], log
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self._wanted = False
        self.revived = 0
        """How often it was started again because it had ended by itself."""

    def start(self) -> None:
        """From now on it shall run; where it does already, nothing is done."""
        with self._lock:
            self._wanted = True
            if self._process is None or self._process.poll() is not None:
                self._begin()

    def revive(self) -> str | None:
        """Start it again when it has ended by itself, as its unit of systemd does: one that finds no server when it
        starts says so and ends. A sentence when it ended in another way.
        """
        with self._lock:
            if not self._wanted or self._process is None or (status := self._process.poll()) is None:
                return None
            self.revived += 1
            self._begin()
            return None if status == 1 else f"a process ended by itself with {status}: see {self.log}"

    def _begin(self) -> None:
        with self.log.open("ab") as said:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        """kill -9."""
        with self._lock:
            self._wanted = False
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def stop(self) -> bool:
        """SIGTERM; whether it ended in order, and soon. One that has only begun may end before it has heard of it."""
        with self._lock:
            self._wanted = False
            assert self._process is not None
            self._process.send_signal(signal.SIGTERM)
            try:
                return self._process.wait(_ENDING_SECONDS) in (0, -signal.SIGTERM)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
                return False


def worker(folder: Path, number: int, kafka: str, database: str) -> Program:
    """`predrain work`."""
    config = folder / "worker.toml"
    settings = _SETTINGS.format(state=folder / "worker-state", kafka=kafka, prefix=PREFIX)
    config.write_text(settings + _OF_WORKERS.format(database=database))
    predrain = Path(sys.executable).parent / "predrain"
    return Program([predrain, "work", "--config", config], folder / f"worker-{number}.log")


class Host:
    """An OSD host: its drives, its OSDs, and its collector, whose spool lies on a small disk of its own as root."""

    def __init__(self, folder: Path, number: int, drives: int, kafka: str, random: Random) -> None:
        self.name = HostName(f"chaos-{number}")
        self.folder = folder / self.name
        self.folder.mkdir()
        self.cabinet = Cabinet(self.folder, f"H{number}", drives, random)
        self._state = self.folder / "state"
        self._state.mkdir()
        self.mounted = os.geteuid() == 0 and _mounted(self._state)
        """Whether its spool has a disk of its own, which can be filled without harm to others: root is needed."""
        sockets = self.folder / "run/ceph"
        sockets.mkdir(parents=True)
        answers = answers_of(looks("reef")[1])
        numbers = range(number * OSDS, (number + 1) * OSDS)
        self._osds = [FakeOsd(sockets / f"ceph-osd.{osd}.asok", answers) for osd in numbers]
        settings = _SETTINGS.format(state=self._state, kafka=kafka, prefix=PREFIX)
        words = {"host": self.name, "smartctl": self.cabinet.program}
        (self.folder / "predrain.toml").write_text(settings + _OF_HOSTS.format(**words))
        self.collector = Program(
            [sys.executable, "-m", "tests.chaos.host", self.folder], self.folder / "collector.log"
        )

    @property
    def spool(self) -> Path:
        """The collector's spool."""
        return self._state / "collector.sqlite"

    @property
    def witnessed(self) -> list[bytes]:
        """Readings that the spool accepted before the eyes of a witness, each as JSON; a torn last one is none."""
        file = self.folder / "accepted"
        return file.read_bytes().split(b"\n")[:-1] if file.exists() else []

    def numbers(self) -> dict[str, int]:
        """What the spool has counted."""
        with sqlite3.connect(f"file:{self.spool}?mode=ro", uri=True) as connection:
            return dict(connection.execute("SELECT name, number FROM numbers").fetchall())

    def fill_disk(self) -> None:
        """No byte more can be written to the spool's disk. Only where it is `mounted`.

        The spool's own files have room that was used before, which would do for minutes: the collector is started anew
        on files that have none.
        """
        self.collector.kill()
        sqlite3.connect(self.spool).execute("VACUUM").connection.close()
        before = len(self.witnessed)
        self.collector.start()
        end = time.monotonic() + _ENDING_SECONDS
        while len(self.witnessed) == before and time.monotonic() < end:
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
        self.collector.kill()
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
