"""A process that is started, killed, frozen and started again. It dies with the thread that started it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from tests.processes import freeze_process, thaw_process

_ENDING_SECONDS = 60.0


class Program:
    """A process that is started again and again; what it says is in `log`."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        self._command, self.log = ["setpriv", "--pdeathsig", "KILL", *command], log
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self._wanted = False
        self.revived = 0
        """The number of times that the process was started again because it had ended by itself."""

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

    def freeze(self, frozen: bool) -> None:
        """SIGSTOP: it stands still with its sockets open; or SIGCONT: it goes on."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                (freeze_process if frozen else thaw_process)(self._process.pid)

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
