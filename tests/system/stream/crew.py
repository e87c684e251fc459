"""Processes of `predrain work` (or `up`): begun, killed and ended, and how much memory each has held."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tests.deadlines import idle_seconds

PREDRAIN = Path(sys.executable).parent / "predrain"
BEGUN = {"work": b"takes its share", "up": b"predrain answers at"}
"""The words that each command prints as soon as a signal would end it in order."""
PATIENCE = 240.0
"""Seconds for which nothing needs to move: a worker that is killed is missed for ten, a load may stretch that."""


class Crew:
    """All of them work by one settings file, in `folder`; none outlives the block."""

    def __init__(self, folder: Path, config: Path, command: str = "work") -> None:
        self._folder, self._config, self._command = folder, config, command
        self._workers: list[subprocess.Popen[bytes]] = []
        self._living: list[int] = []
        self.peaks: list[int] = []
        """Most memory (RSS, bytes) of each worker that was killed or ended, in that order."""
        self.burnt = 0.0
        """Processor seconds of these together."""

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.kill()
            worker.wait()

    def begin(self, count: int) -> None:
        """Start so many more."""
        # The variables of a test or of a shell are not meant for the workers.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PREDRAIN_")}
        for _ in range(count):
            self._living.append(len(self._workers))
            with self._said(self._living[-1]).open("wb") as said:
                command = [PREDRAIN, self._command, "--config", self._config]
                self._workers.append(subprocess.Popen(command, stderr=said, env=environment))

    def kill(self, which: int) -> None:
        """kill -9 of the one that is at this place among those that live."""
        self._end(self._living[which], signal.SIGKILL)

    def end(self) -> list[int]:
        """End all that live, in order, once they have begun; returns their exit codes."""
        for number in self._living:
            self.until(lambda number=number: BEGUN[self._command] in self._said(number).read_bytes())
        return [self._end(number, signal.SIGTERM) for number in tuple(self._living)]

    def until(self, done: Callable[[], bool], moved: Callable[[], object] = lambda: None) -> None:
        """Wait until it is `done`, as long as what `moved` tells changes now and then. Raises AssertionError."""
        last, end = moved(), idle_seconds() + PATIENCE
        while not done():
            now = moved()
            if now != last:
                last, end = now, idle_seconds() + PATIENCE
            told = [self._said(number).read_text()[-500:] for number in self._living]
            assert idle_seconds() < end, f"the workers do not come to an end: {told}"
            living = [self._workers[number].poll() is None for number in self._living]
            assert all(living), f"a worker has ended by itself: {told}"
            time.sleep(0.3)

    def _end(self, number: int, how: signal.Signals) -> int:
        worker = self._workers[number]
        self.peaks.append(peak_of(worker.pid))
        self.burnt += burnt_by(worker.pid)
        worker.send_signal(how)
        self._living.remove(number)
        return worker.wait(PATIENCE)

    def _said(self, number: int) -> Path:
        return self._folder / f"worker-{number}.txt"


def peak_of(pid: int) -> int:
    """The most memory that a living process has held, bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def burnt_by(pid: int) -> float:
    """Processor seconds of a living process."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
