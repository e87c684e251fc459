"""One thread that lives as long as the mgr and sends the mon commands that command handlers need.

ceph-mgr completes a module's mon command in the Python thread state of the thread that sent it. The thread state
of a handler is deleted as soon as the handler returns, which may be a moment earlier: the mgr then crashes (seen
on Reef with Python 3.13). The thread of `serve()` lasts, but it may be waiting for the service, and a halt must
not wait for that.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

SECONDS = 5.0


class WorkNotDoneInTime(Exception):
    """The work was not done in time. It may still be done later."""


class SerialWorker:
    """A thread that does one piece of work after another, each for a handler that waits."""

    def __init__(self) -> None:
        self._desk: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="predrain-clerk", daemon=True).start()

    def have_done(self, work: Callable[[], None], seconds: float = SECONDS) -> None:
        """Let the thread do `work` and wait at most `seconds`. Raises WorkNotDoneInTime, and what `work` raises."""
        done, troubles = threading.Event(), []

        def carefully() -> None:
            try:
                work()
            except Exception as trouble:  # noqa: BLE001
                troubles.append(trouble)
            done.set()

        self._desk.put(carefully)
        if not done.wait(seconds):
            raise WorkNotDoneInTime(
                f"the mon has not answered within {seconds:.0f} s; look again: ceph predrain status"
            )
        if troubles:
            raise troubles[0]

    def _work(self) -> None:
        while True:
            self._desk.get()()
