"""The processes of one cluster: started, signalled, and gone when their owner is."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.deadlines import idle_seconds
from tests.system.ceph.roots import CLEAN


class Daemons:
    """Daemons by name (`mon.a`, `mgr.x`, `osd.3`). Their ids are kept in the folder: another process can go on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        kept = folder / "pids.json"
        self._known: dict[str, tuple[int, str | None]] = {}
        if kept.exists():
            self._known = {name: (pid, start) for name, (pid, start) in json.loads(kept.read_text()).items()}

    def spawn(self, name: str, argv: list[str]) -> None:
        """Start one; what it prints goes to log/NAME.out."""
        raise_limit()
        with (self._folder / "log" / f"{name}.out").open("ab") as said:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=CLEAN, start_new_session=True
            )  # fmt: skip
        process.returncode = 0  # its end is awaited by id, in `kill`; Popen need not warn of it
        self._known[name] = (process.pid, born(process.pid))
        (self._folder / "pids.json").write_text(json.dumps(self._known))

    def pid(self, name: str) -> int:
        """The process id of a daemon that runs; 0 when it does not."""
        pid, start = self._known.get(name, (0, None))
        with contextlib.suppress(ChildProcessError):
            if pid:
                os.waitpid(pid, os.WNOHANG)
        return pid if pid and start is not None and born(pid) == start else 0

    def names(self) -> list[str]:
        """All that were ever started, OSDs first."""
        return sorted(self._known, key=lambda name: (not name.startswith("osd."), name))

    def send(self, name: str, how: signal.Signals) -> None:
        """Send a signal."""
        if pid := self.pid(name):
            os.kill(pid, how)

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL, seconds: float = 30) -> None:
        """Send a signal that ends it, and wait until it has ended."""
        self.send(name, how)
        until = idle_seconds() + seconds
        while self.pid(name):
            if idle_seconds() > until:
                raise TimeoutError(f"{name} did not end by {how.name} in {seconds:.0f} s")
            time.sleep(0.02)


def born(pid: int) -> str | None:
    """Return the start time of a process; None when the process is gone or a zombie.

    The start time distinguishes the process from a later one with the same id. The first thread of a process is a
    zombie, too, while the other threads end for an `exec`, as when ceph-mgr starts itself again. Such a process has
    more than one thread and counts as alive: a second ceph-mgr of the same name would take turns with it.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    state, threads, start = fields[0], int(fields[17]), fields[19]
    return None if state == "Z" and threads <= 1 else start


AIO_CONTEXTS = Path("/proc/sys/fs/aio-max-nr")
AIO_WANTED = 1_048_576


def raise_limit() -> None:
    """The kernel's default of 65,536 asynchronous requests for all processes is used up by about 30 OSDs.

    Where it may not be raised, an OSD says so when it starts.
    """
    with contextlib.suppress(OSError, ValueError):
        if int(AIO_CONTEXTS.read_text()) < AIO_WANTED:
            AIO_CONTEXTS.write_text(f"{AIO_WANTED}\n")


def sweep(folder: Path, *, keep_logs: bool = False) -> None:
    """End every process of the cluster in `folder`, free its loop devices, remove the folder."""
    daemons = Daemons(folder)
    for name in daemons.names():
        daemons.kill(name)
    loops = folder / "loops.json"
    for device in json.loads(loops.read_text()).values() if loops.exists() else ():
        subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)
    if not keep_logs:
        shutil.rmtree(folder, ignore_errors=True)


def keep_watch(folder: Path) -> subprocess.Popen[bytes]:
    """A process that sweeps the folder as soon as this process ends, however it ends."""
    code = (
        "import sys, pathlib; from tests.system.ceph.daemons import sweep\n"
        "sys.stdin.read(); sweep(pathlib.Path(sys.argv[1]))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdin=subprocess.PIPE, cwd=Path(__file__).parents[3], start_new_session=True,
    )  # fmt: skip
