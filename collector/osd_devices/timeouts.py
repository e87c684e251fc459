"""Looks at folders that may hang: a look is given a while, and one that hangs is left behind.

Who reads a folder on a disk that answers no more waits inside the kernel, where nothing ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

SECONDS = 2.0
"""A folder on a disk that is only slow is in memory after the first look."""

Seen = TypeVar("Seen")


class Patience:
    """Keep one over the looks: whoever still hangs from an earlier one is not waited for again, nor doubled."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._left: dict[str, Thread] = {}

    def ask(self, key: str, look: Callable[[], Seen]) -> Seen | None:
        """What `look` gives; None where it hangs."""
        if key in self._left and self._left[key].is_alive():
            return None
        seen: list[Seen] = []
        thread = Thread(target=lambda: seen.append(look()), name=f"look at {key}", daemon=True)
        thread.start()
        thread.join(self._seconds)
        if thread.is_alive():
            self._left[key] = thread
        return seen[0] if seen else None
