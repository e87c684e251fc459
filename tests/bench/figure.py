"""A benchmark: two pieces of work on the same input, ours and a baseline. Each runs in a process of its own."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class MissingInput(Exception):
    """The figure cannot be taken here: what is missing, and what brings it."""


@dataclass
class Work:
    """An amount of work, and the time that it took. Only code inside `timed()` counts."""

    amount: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0
    """Processor seconds of all threads: what is left of a figure on a busy machine."""
    note: str = ""

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time of this block."""
        began, burnt = time.perf_counter(), time.process_time()
        yield
        self.seconds += time.perf_counter() - began
        self.cpu += time.process_time() - burnt

    @property
    def rate(self) -> float:
        """Amount a second."""
        return self.amount / self.seconds

    @property
    def cpu_each(self) -> float:
        """Processor seconds for one of the amount."""
        return self.cpu / self.amount

    @property
    def quiet(self) -> float:
        """Seconds that it takes at most on an idle machine: what it burnt, where it had to wait for a processor."""
        return min(self.seconds, self.cpu)

    @property
    def quiet_rate(self) -> float:
        """Amount a second, at least, on an idle machine."""
        return self.amount / self.quiet


@dataclass(frozen=True)
class Figure:
    """One line of `make bench`."""

    name: str
    unit: str
    """Of the amount: `drive-days`, `documents`."""
    ours: Callable[[], Work]
    baseline: Callable[[], Work]
    beside: str
    """A description of the baseline."""
    target: str
    meets: Callable[[Work, float], bool] | None = None
    """Whether the work, with its peak in gigabytes, meets the target; None: the baseline is needed to say so."""
    long: bool = False
    """Takes minutes: measured when asked for."""
    most_times: float | None = None
    """The target is this multiple of the baseline's processor time for the same amount; None: it is another."""
    least_rate: float | None = None
    """The target is this multiple of the baseline's rate by the clock; None: it is another."""


def peak_gigabytes() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
