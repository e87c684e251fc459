"""What commands ask of the service: carried by `serve()`, waited for a moment, dropped when nobody carried it in time.

A command never speaks HTTP itself: a service that hangs must not hang the mgr's commands.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

WAITING_MAX = 32
PATIENCE_SECONDS = 1.5
GOOD_FOR_SECONDS = 60.0
"""A wish older than this is not carried any more: a person has long looked elsewhere."""


class TooMany(Exception):
    """The service is so far behind that nothing more is taken."""


@dataclass
class Errand:
    """One request to the service and, once it was carried, its answer or why there is none."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    answer: Any = None
    trouble: str = ""
    asked_at: float = field(default_factory=time.monotonic)
    _done: threading.Event = field(default_factory=threading.Event)

    def finish(self, answer: Any = None, trouble: str = "") -> None:
        """By who carried it."""
        self.answer, self.trouble = answer, trouble
        self._done.set()

    def wait(self) -> bool:
        """A moment; whether it was carried meanwhile."""
        return self._done.wait(PATIENCE_SECONDS)


class Errands:
    """A short queue between the mgr's command threads and `serve()`."""

    def __init__(self) -> None:
        self._queue: deque[Errand] = deque()
        self._lock = threading.Lock()
        self._arrived = threading.Event()

    def ask(self, errand: Errand) -> Errand:
        """Queue it and wait a moment. Raises TooMany."""
        with self._lock:
            if len(self._queue) >= WAITING_MAX:
                raise TooMany(f"{WAITING_MAX} wishes wait for the service; see ceph predrain status")
            self._queue.append(errand)
        self._arrived.set()
        errand.wait()
        return errand

    def take(self) -> Errand | None:
        """The next one that is still worth carrying; None when there is none."""
        with self._lock:
            while self._queue:
                errand = self._queue.popleft()
                if time.monotonic() - errand.asked_at < GOOD_FOR_SECONDS:
                    return errand
                errand.finish(trouble="it waited for over a minute and was dropped; ask again")
        return None

    def sleep(self, seconds: float) -> None:
        """Until something arrives, at most so long."""
        self._arrived.wait(max(0.0, seconds))
        self._arrived.clear()

    def wake(self) -> None:
        """End the sleep."""
        self._arrived.set()
