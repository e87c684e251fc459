"""Memory and processor time of the processes that are measured, and waits that end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression, median

from tests.bench.starting import processor_seconds

SAMPLE_SECONDS = 2.0
WARM_UP_SHARE = 0.4
"""Part of the steady load in which caches fill; the slope is that of the rest."""
LEAST_SECONDS, SECONDS_A_DISK = 120.0, 0.02
"""The longest wait for anything: so much, and so much for each disk, on a machine that may be busy."""

REST_SECONDS, REST_SHARE = 12.0, 0.05
"""A process is at rest if it takes less than this share of a processor for so long, which is longer than the pause
between two turns of the disk lives.
"""


class GrowthFailed(Exception):
    """A size could not be measured, with the reason."""


def compute_patience(disks: int) -> float:
    """Return the seconds after which a wait for `disks` disks is given up."""
    return LEAST_SECONDS + disks * SECONDS_A_DISK


def wait_for(what: str, is_done: Callable[[], bool], seconds: float, pause: float = 0.05) -> None:
    """Wait until it is done. Raises GrowthFailed after so many seconds."""
    end = time.monotonic() + seconds
    while not is_done():
        if time.monotonic() > end:
            raise GrowthFailed(f"{what} did not come within {seconds:,.0f} s")
        time.sleep(pause)


@dataclass(frozen=True)
class ProcessProbe:
    """Processes that are measured together, each with those that it started."""

    pids: tuple[int, ...]

    def largest_megabytes(self, line: str = "VmRSS") -> float:
        """Return the memory of the largest process: now, or at its peak (`VmHWM`)."""
        return max(_read_kilobytes(pid, "status", line) for pid in self.pids) / 1e3

    def proportional_megabytes(self) -> float:
        """Return the memory of all of them, in which a page of several processes counts once."""
        return sum(_read_kilobytes(pid, "smaps_rollup", "Pss") for pid in _list_family(self.pids)) / 1e3

    def burnt(self) -> float:
        """Return their processor seconds so far."""
        return sum(processor_seconds(pid) for pid in _list_family(self.pids))


def wait_until_at_rest(probe: ProcessProbe, seconds: float) -> None:
    """Wait until the processes are at rest. Raises GrowthFailed after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        before = probe.burnt()
        time.sleep(REST_SECONDS)
        if probe.burnt() - before < REST_SHARE * REST_SECONDS:
            return
        if time.monotonic() > end:
            raise GrowthFailed(f"the service did not come to rest within {seconds:,.0f} s")


@dataclass
class MemorySamples:
    """Memory of the largest process under a steady load."""

    probe: ProcessProbe
    taken: list[tuple[float, float]] = field(default_factory=list)
    """(seconds since the begin, MB)."""

    @property
    def steady_megabytes(self) -> float:
        """The median after the warm-up."""
        return median(megabytes for _, megabytes in self._warm())

    @property
    def megabytes_per_minute(self) -> float:
        """The slope after the warm-up. Raises GrowthFailed if there are too few samples."""
        warm = self._warm()
        if len(warm) < 2:
            raise GrowthFailed("the steady load was too short for a slope: let --steady-seconds be longer")
        at, megabytes = zip(*warm, strict=True)
        return 60.0 * linear_regression(at, megabytes).slope

    def _warm(self) -> Sequence[tuple[float, float]]:
        return self.taken[int(WARM_UP_SHARE * len(self.taken)) :]


@contextmanager
def sample_memory(probe: ProcessProbe, every: float = SAMPLE_SECONDS) -> Iterator[MemorySamples]:
    """Sample until the context ends."""
    samples, over, began = MemorySamples(probe), threading.Event(), time.monotonic()

    def watch() -> None:
        while True:
            samples.taken.append((time.monotonic() - began, probe.largest_megabytes()))
            if over.wait(every):
                return

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield samples
    finally:
        over.set()
        watching.join()


def _list_family(pids: Sequence[int]) -> set[int]:
    """Return the processes and their descendants that live."""
    parents = dict[int, int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended meanwhile
    family = set(pids)
    while grown := {pid for pid, parent in parents.items() if parent in family and pid not in family}:
        family |= grown
    return family


def _read_kilobytes(pid: int, file: str, line: str) -> float:
    """Return a figure of the kernel in kB of 1,000 B; 0 for a process that has ended."""
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    found = next((one for one in lines if one.startswith(f"{line}:")), None)
    if found is None:
        return 0.0
    return int(found.split()[1]) * 1024 / 1e3
