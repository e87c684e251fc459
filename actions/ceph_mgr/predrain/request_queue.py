"""Requests of commands to the service. `serve()` sends them; a command waits for a moment, and an old request is
dropped.

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
"""A request older than this is not sent any more, because nobody waits for its answer."""


class RequestQueueFull(Exception):
    """The service is so far behind that no further request is accepted."""


@dataclass
class QueuedRequest:
    """One request to the service and, once it was sent, its answer or the reason why there is none."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    answer: Any = None
    trouble: str = ""
    asked_at: float = field(default_factory=time.monotonic)
    _done: threading.Event = field(default_factory=threading.Event)

    def finish(self, answer: Any = None, trouble: str = "") -> None:
        """Set the answer or the trouble, and wake the waiting command. Called by the thread that sent the request."""
        self.answer, self.trouble = answer, trouble
        self._done.set()

    def wait(self) -> bool:
        """Wait at most PATIENCE_SECONDS. Return whether the request was finished in that time."""
        return self._done.wait(PATIENCE_SECONDS)


class RequestQueue:
    """A short queue between the mgr's command threads and `serve()`."""

    def __init__(self) -> None:
        self._queue: deque[QueuedRequest] = deque()
        self._lock = threading.Lock()
        self._arrived = threading.Event()

    def submit_and_wait(self, errand: QueuedRequest) -> QueuedRequest:
        """Queue the request and wait for a moment. Raises RequestQueueFull."""
        with self._lock:
            if len(self._queue) >= WAITING_MAX:
                raise RequestQueueFull(
                    f"{WAITING_MAX} requests wait for the service; see ceph predrain status"
                )
            self._queue.append(errand)
        self._arrived.set()
        errand.wait()
        return errand

    def take_next(self) -> QueuedRequest | None:
        """Return the next request that is still young enough, or None if there is none. Finish older ones as
        dropped.
        """
        with self._lock:
            while self._queue:
                errand = self._queue.popleft()
                if time.monotonic() - errand.asked_at < GOOD_FOR_SECONDS:
                    return errand
                errand.finish(trouble="it waited for over a minute and was dropped; ask again")
        return None

    def sleep(self, seconds: float) -> None:
        """Wait until a request arrives, at most `seconds`."""
        self._arrived.wait(max(0.0, seconds))
        self._arrived.clear()

    def wake(self) -> None:
        """End a sleep at once."""
        self._arrived.set()
