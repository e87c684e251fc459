"""The progress of a change of the store's version, in the log."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final

import structlog

PROGRESS_SECONDS: Final = 2.0
"""The time after which a change of the version logs its progress, again and again."""


class MigrationProgress:
    """Logs what a change of the version does, every two seconds for as long as the change lasts."""

    def __init__(self, store: str, held: int, to: int) -> None:
        self._store, self._held, self._to = store, held, to
        self._step = "begins"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._log_steps, name="store version", daemon=True)

    def note_copied(self, left: int, pages: int) -> None:
        """Note how many of the file's pages are still to be copied."""
        self._step = f"{1 - left / pages:.0%} copied" if pages else "copied"

    def note_version(self, version: int) -> None:
        """Note the version that the tables have now."""
        self._step = f"its tables have version {version}"

    def __enter__(self) -> MigrationProgress:
        """Begin to log."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the log."""
        self._over.set()
        self._thread.join()

    def _log_steps(self) -> None:
        seconds = 0.0
        while not self._over.wait(PROGRESS_SECONDS):
            seconds += PROGRESS_SECONDS
            structlog.get_logger().info(
                "the store is still brought to another version",
                store=self._store,
                from_version=self._held,
                to_version=self._to,
                step=self._step,
                seconds=round(seconds),
            )
