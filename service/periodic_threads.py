"""Threads that repeat their step until they are stopped. What goes wrong is told and tried again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

import structlog

from predrain.data.refusal import Refusal

FAULT_SECONDS = 5.0


class Loops:
    """`changed` is called whenever a loop breaks or is whole again."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.faults: dict[str, str] = {}
        """What is broken now, by loop: a sentence."""
        self._changed, self._stopping = changed, threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, name: str, step: Callable[[], None]) -> None:
        """Repeat `step` in a thread of its own."""
        thread = threading.Thread(target=self._repeat, args=(name, step), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def wait(self, seconds: float) -> None:
        """Until so many seconds are over, or the end has come."""
        self._stopping.wait(seconds)

    def end(self) -> None:
        """No step begins from now on; whoever waits goes on at once."""
        self._stopping.set()

    def join(self, seconds: float) -> None:
        """Let every step end. A thread that is late is left: all that it does is resumable."""
        deadline = monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - monotonic()))

    def _repeat(self, name: str, step: Callable[[], None]) -> None:
        while not self._stopping.is_set():
            try:
                step()
                if self.faults.pop(name, None):
                    self._changed()
            except Exception as error:  # noqa: BLE001  (a loop outlives every fault)
                plain = isinstance(error, Refusal)
                told = str(error) if plain else f"unexpected {type(error).__name__}: {error}"
                if self.faults.get(name) != told:
                    structlog.get_logger().error(f"{name} failed", why=told, exc_info=not plain)
                self.faults[name] = told
                self._changed()
                self.wait(FAULT_SECONDS)
