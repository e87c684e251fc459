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
        self._awaited: list[threading.Event] = []

    def start_loop(
        self,
        name: str,
        step: Callable[[], None],
        again_seconds: float = FAULT_SECONDS,
        first_seconds: float = 0.0,
        first_after: threading.Event | None = None,
    ) -> None:
        """Repeat `step` in a thread of its own, and `again_seconds` after it failed.

        The first step begins after `first_seconds`, or before them once `first_after` is set.
        """
        if first_after is not None:
            self._awaited.append(first_after)
        thread = threading.Thread(
            target=self._repeat,
            args=(name, step, again_seconds, first_seconds, first_after or self._stopping),
            name=name,
            daemon=True,
        )
        thread.start()
        self._threads.append(thread)

    def wait(self, seconds: float) -> None:
        """Wait for `seconds`, or until the stop is requested."""
        self._stopping.wait(seconds)

    def request_stop(self) -> None:
        """Begin no step from now on, and wake every thread that waits. It sets every `first_after`."""
        self._stopping.set()
        for awaited in self._awaited:
            awaited.set()

    def join(self, seconds: float) -> None:
        """Wait until every step has ended, for at most `seconds`. A late thread is left alone: its work is
        resumable.
        """
        deadline = monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - monotonic()))

    def _repeat(
        self,
        name: str,
        step: Callable[[], None],
        again_seconds: float,
        first_seconds: float,
        first_after: threading.Event,
    ) -> None:
        first_after.wait(first_seconds)
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
