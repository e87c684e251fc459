"""A counter that grows with each change: the page listens to it, and it keys read models and ETags."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum

SOONEST_SECONDS, LONGEST_SECONDS = 0.25, 5.0
APART_SECONDS = 0.02
"""Mean seconds between two listeners that are notified of a change, since each one then requests some
milliseconds of work.
"""


class ChangeKind(StrEnum):
    """The kinds of data that a listener may want to fetch again."""

    STATUS = "status"
    OSDS = "osds"
    OUTLOOKS = "outlooks"
    DEVICES = "devices"
    DRAINS = "drains"
    HALT = "halt"
    ALERTS = "alerts"


class ChangeFeed:
    """A thread-safe feed. Writers call `notify_change`; readers remember the number that they have seen."""

    def __init__(self, remembered: int = 1024) -> None:
        self._told: deque[tuple[int, frozenset[ChangeKind]]] = deque(maxlen=remembered)
        self._lock, self._telling = threading.Lock(), threading.Lock()
        self._preparing: list[Callable[[int], None]] = []
        self._number = 0
        self._closed = False
        self._listeners = 0

    @property
    def number(self) -> int:
        """The number of changes so far; 0 at first."""
        return self._number

    @property
    def is_closed(self) -> bool:
        """True if the service is shutting down."""
        return self._closed

    @contextmanager
    def count_listener(self) -> Iterator[None]:
        """Count one more listener while the context lasts."""
        with self._lock:
            self._listeners += 1
        try:
            yield
        finally:
            with self._lock:
                self._listeners -= 1

    @property
    def pace(self) -> float:
        """Seconds between two notifications of one listener.

        The pause grows with the number of listeners, so that the requests of 250 listeners cost no more than
        those of a dozen.
        """
        return min(LONGEST_SECONDS, max(SOONEST_SECONDS, APART_SECONDS * self._listeners))

    def register_preparation(self, step: Callable[[int], None]) -> None:
        """Call `step` with the number of each change before any listener is notified, in the thread that reports
        the change.
        """
        self._preparing.append(step)

    def notify_change(self, *kinds: ChangeKind) -> None:
        """Count a change of these kinds and notify the listeners."""
        with self._telling:
            number = self._number + 1
            for step in self._preparing:
                with suppress(
                    Exception
                ):  # an error reaches the readers of the value, not the thread that changed it
                    step(number)
            with self._lock:
                self._number = number
                self._told.append((number, frozenset(kinds)))

    def find_changes_since(self, number: int) -> tuple[int, frozenset[ChangeKind]]:
        """Return the newest number and the kinds that changed after `number`; every kind if that is too long ago."""
        with self._lock:
            if number >= self._number:
                return self._number, frozenset()
            if not self._told or self._told[0][0] > number + 1:
                return self._number, frozenset(ChangeKind)
            kinds = frozenset[ChangeKind]().union(*(told for at, told in self._told if at > number))
            return self._number, kinds

    def close(self) -> None:
        """Disconnect every listener."""
        self._closed = True
