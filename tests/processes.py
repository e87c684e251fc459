"""Whether processes have ended, and processes that stand still. `kill` returns before the kernel has acted."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from tests.deadlines import idle_seconds

LONG_ENOUGH = 10.0
"""Seconds."""


def runs(pid: int) -> bool:
    """False for one that is gone, or that nobody has waited for yet (a zombie)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def ends(pid: int) -> bool:
    """Whether it is gone, or a zombie, before long."""
    until = idle_seconds() + LONG_ENOUGH
    while runs(pid) and idle_seconds() < until:
        time.sleep(0.01)
    return not runs(pid)


STOPPED = frozenset("TtZX")
"""States of `/proc/PID/stat` (man 5 proc) in which a thread runs nothing."""


def freeze_process(pid: int, *, seconds: float = 30) -> None:
    """Stop a process, and return when each of its threads has stopped. A process that has ended counts as stopped.

    `kill` returns before the threads stop: on a busy machine a thread answers requests for a while after SIGSTOP.

    Raises:
        TimeoutError: a thread still runs after this many seconds.
    """
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    until = idle_seconds() + seconds
    while not _read_thread_states(pid) <= STOPPED:
        if idle_seconds() > until:
            raise TimeoutError(f"process {pid} did not stop within {seconds:.0f} s")
        time.sleep(0.005)


def thaw_process(pid: int) -> None:
    """Let a process that was stopped go on."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _read_thread_states(pid: int) -> set[str]:
    states = set()
    for thread in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):
            states.add(thread.read_text().rsplit(")", 1)[1].split()[0])
    return states
