"""Deadlines of tests, in seconds of an idle machine: a busy machine makes a test slow, and never makes it fail.

`idle_seconds` replaces `time.monotonic` wherever a test waits for something or limits how long something takes. The
clock advances more slowly while more tasks want to run than there are cores, and on a machine that is slower than the
two idle cores for which the tests were written. `scale_timeout` applies the second factor to the limits of
pytest-timeout.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
import time
from pathlib import Path

MULTIPLE = "DEADLINE_MULTIPLE"
"""The environment variable that hands the measured multiple to workers and child processes."""
NOMINAL_SECONDS = 0.25
"""The seconds that `measure_multiple` takes on one idle core of the kind for which the deadlines were written."""
_BLOCK = bytes(1 << 20)
_BLOCKS = 96


def measure_multiple() -> int:
    """Return how many times slower than an idle machine this one is now, as a whole number of at least 1.

    The first call measures, and leaves the result in the environment for the processes that the run starts.
    """
    if given := os.environ.get(MULTIPLE):
        return max(1, int(given))
    began = time.monotonic()
    total = hashlib.md5(usedforsecurity=False)
    for _ in range(_BLOCKS):
        total.update(_BLOCK)
    multiple = max(1, math.ceil((time.monotonic() - began) / NOMINAL_SECONDS))
    os.environ[MULTIPLE] = str(multiple)
    return multiple


def read_crowding(loadavg: Path = Path("/proc/loadavg")) -> float:
    """Return the number of tasks that want to run for each core, at least 1.

    The larger of the average over a minute, which is steady, and the count of this moment, which is quick.
    """
    minute, _, _, runnable, _ = loadavg.read_text().split()
    now = int(runnable.split("/")[0])
    return max(1.0, max(float(minute), now) / len(os.sched_getaffinity(0)))


class IdleClock:
    """A monotonic clock in seconds of an idle machine; each call adds the time since the call before."""

    def __init__(self, multiple: int) -> None:
        self._multiple = multiple
        self._lock = threading.Lock()
        self._seconds = 0.0
        self._read_at = time.monotonic()

    def read(self) -> float:
        """Return the seconds so far. The first reading starts from any value, as `time.monotonic` does."""
        with self._lock:
            now = time.monotonic()
            self._seconds += (now - self._read_at) / (self._multiple * read_crowding())
            self._read_at = now
            return self._seconds


_clock = IdleClock(measure_multiple())


def idle_seconds() -> float:
    """Return the reading of this process's idle clock, in seconds."""
    return _clock.read()


def scale_timeout(seconds: float) -> float:
    """Return a limit of pytest-timeout for this machine."""
    return seconds * measure_multiple()
