"""The state directory: one process at a time, one file a thing, nobody else may read it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from data.refusal import Refusal


class StateInUse(Refusal):
    """Another process runs on this directory."""


class StateUnusable(Refusal):
    """The directory cannot be made or written."""


class StateDir:
    """Paths of what a service keeps, and the lock that only one running service holds.

    Commands that may run beside a service (halt, dead letters) use the paths without it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "log.sqlite"
        self.store = path / "store.sqlite"
        self.token = path / "token"
        self.url = path / "url"
        self.bundles = path / "bundles"
        self.scorebook = path / "scorebook.sqlite"
        self.registry = path / "models.sqlite"
        self._lock = path / "lock"
        self._held: int | None = None

    def make(self) -> StateDir:
        """Create the directory (0700) when it is missing. Raises StateUnusable."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StateUnusable(
                f"{self.path} cannot be made: {error.strerror}; give --state a directory that you may write"
            ) from error
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise StateUnusable(
                f"{self.path} cannot be written; run as its owner or give --state another directory"
            )
        return self

    def __enter__(self) -> StateDir:
        """Take the lock. Raises StateInUse, StateUnusable."""
        self.make()
        handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
            os.close(handle)
            raise StateInUse(
                f"{self.path} is in use by process {owner}; stop it, or give --state another directory"
            ) from None
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        self._held = handle
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the lock back; the kernel does so too when the process dies."""
        self.url.unlink(missing_ok=True)
        if self._held is not None:
            os.close(self._held)
            self._held = None
