"""What changed, as a growing counter: the page listens to it, read models and ETags are keyed by it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum

SOONEST_SECONDS, LONGEST_SECONDS = 0.25, 5.0
APART_SECONDS = 0.02
"""Between two listeners who hear of a change, on the average: some milliseconds of work are asked for each time."""


class ChangeKind(StrEnum):
    """What a listener may want to fetch anew."""

    STATUS = "status"
    OSDS = "osds"
    OUTLOOKS = "outlooks"
    DEVICES = "devices"
    DRAINS = "drains"
    HALT = "halt"
    ALERTS = "alerts"


class Changes:
    """Thread-safe. Writers call `tell`; readers remember the number they have seen."""

    def __init__(self, remembered: int = 1024) -> None:
        self._told: deque[tuple[int, frozenset[ChangeKind]]] = deque(maxlen=remembered)
        self._lock, self._telling = threading.Lock(), threading.Lock()
        self._preparing: list[Callable[[int], None]] = []
        self._number = 0
        self._closed = False
        self._listeners = 0

    @property
    def number(self) -> int:
        """How often something was told; 0 at first."""
        return self._number

    @property
    def closed(self) -> bool:
        """Whether the service is going down."""
        return self._closed

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While somebody listens."""
        with self._lock:
            self._listeners += 1
        try:
            yield
        finally:
            with self._lock:
                self._listeners -= 1

    @property
    def pace(self) -> float:
        """Seconds for which a listener who heard of a change hears of no other: the longer, the more of them listen, so
        that what 250 of them then ask costs no more than what a dozen do.
        """
        return min(LONGEST_SECONDS, max(SOONEST_SECONDS, APART_SECONDS * self._listeners))

    def prepare(self, step: Callable[[int], None]) -> None:
        """Call `step` with the number of each change before anybody hears of it, in the thread of who tells of it."""
        self._preparing.append(step)

    def tell(self, *kinds: ChangeKind) -> None:
        """Something of these kinds changed."""
        with self._telling:
            number = self._number + 1
            for step in self._preparing:
                with suppress(
                    Exception
                ):  # who asks for it meets what is wrong; who changed something is not told off
                    step(number)
            with self._lock:
                self._number = number
                self._told.append((number, frozenset(kinds)))

    def since(self, number: int) -> tuple[int, frozenset[ChangeKind]]:
        """The newest number, and what changed after `number`; every kind when that is too long ago."""
        with self._lock:
            if number >= self._number:
                return self._number, frozenset()
            if not self._told or self._told[0][0] > number + 1:
                return self._number, frozenset(ChangeKind)
            kinds = frozenset[ChangeKind]().union(*(told for at, told in self._told if at > number))
            return self._number, kinds

    def close(self) -> None:
        """Let every listener go."""
        self._closed = True
