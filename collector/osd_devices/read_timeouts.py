"""Reads folders that may hang: each read has a time limit, and a read that hangs is left behind.

A thread that reads a folder on a disk that no longer answers waits inside the kernel, where nothing can end it.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

SECONDS = 2.0
"""Seconds. A folder on a disk that is only slow is in memory after its first read."""

Seen = TypeVar("Seen")


class TimeoutRunner:
    """Runs reads with a time limit.

    Keep one object over all reads: a read that still hangs is not waited for or begun again.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._left: dict[str, Thread] = {}

    def run_with_timeout(self, key: str, look: Callable[[], Seen]) -> Seen | None:
        """Return the result of `look`, or None if it hangs."""
        if key in self._left and self._left[key].is_alive():
            return None
        seen: list[Seen] = []
        thread = Thread(target=lambda: seen.append(look()), name=f"look at {key}", daemon=True)
        thread.start()
        thread.join(self._seconds)
        if thread.is_alive():
            self._left[key] = thread
        return seen[0] if seen else None
