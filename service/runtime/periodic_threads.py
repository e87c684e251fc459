"""Threads that repeat their step until they are stopped. A failed step is logged and repeated."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

import structlog

from predrain.data.refusal import Refusal

FAULT_SECONDS = 5.0


class PeriodicThreads:
    """The repeating threads of one process. `changed` is called whenever a loop fails or works again."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.faults: dict[str, str] = {}
        """A sentence for each loop whose last step failed."""
        self._changed, self._stopping = changed, threading.Event()
        self._threads: list[threading.Thread] = []

    def start_loop(
        self,
        name: str,
        step: Callable[[], None],
        again_seconds: float = FAULT_SECONDS,
        first_seconds: float = 0.0,
    ) -> None:
        """Repeat `step` in a thread of its own: first after `first_seconds`, and `again_seconds` after it failed."""
        thread = threading.Thread(
            target=self._repeat, args=(name, step, again_seconds, first_seconds), name=name, daemon=True
        )
        thread.start()
        self._threads.append(thread)

    def wait(self, seconds: float) -> None:
        """Wait for `seconds`, or until the stop is requested."""
        self._stopping.wait(seconds)

    def request_stop(self) -> None:
        """Begin no step from now on, and wake every thread that waits."""
        self._stopping.set()

    def join(self, seconds: float) -> None:
        """Wait until every step has ended, for at most `seconds`. A late thread is left alone: its work is
        resumable.
        """
        deadline = monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - monotonic()))

    def _repeat(
        self, name: str, step: Callable[[], None], again_seconds: float, first_seconds: float
    ) -> None:
        self.wait(first_seconds)
        while not self._stopping.is_set():
            try:
                step()
                if self.faults.pop(name, None):
                    self._changed()
            except Exception as error:  # noqa: BLE001  (a loop outlives every fault)
                plain = isinstance(error, Refusal)
                told = str(error) if plain else f"unexpected {type(error).__name__}: {error}"
                if self.faults.get(name) != told:
                    structlog.get_logger().error(f"{name} failed", reason=told, exc_info=not plain)
                self.faults[name] = told
                self._changed()
                self.wait(again_seconds)
