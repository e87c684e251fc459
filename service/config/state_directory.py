"""The state directory: for one process at a time, with one file per purpose, readable only by its owner."""

from __future__ import annotations

import fcntl
import os
import pwd
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from predrain.data.refusal import Refusal


def default_state(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the default directory: systemd's directory, else the XDG state home of the user."""
    given = environment.get("STATE_DIRECTORY")
    if given:
        return Path(given.split(":")[0])
    home = environment.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "predrain"


class StateInUse(Refusal):
    """Another process runs on this directory."""


class StateUnusable(Refusal):
    """The directory cannot be made or written."""


class StateDir:
    """The paths of a service's state, and the lock that only one running service holds.

    Commands that may run beside a service (halt, dead letters) use the paths without the lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "log.sqlite"
        self.store = path / "store.sqlite"
        self.token = path / "token"
        self.signing_key = path / "signing_key"
        self.url = path / "url"
        self.bundles = path / "bundles"
        self.tried = self.bundles / "tried.json"
        self.scorebook = path / "scorebook.sqlite"
        self.registry = path / "models.sqlite"
        self.backups = path / "backups"
        self.restoring = path / ".restoring"
        self._lock = path / "lock"
        self._held = ExitStack()

    def ensure_exists(self) -> StateDir:
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

    def is_one(self) -> bool:
        """Return whether the directory holds anything of a service, so that a mistaken name is noticed."""
        kept = (self._lock, self.token, self.log, self.store, self.bundles, self.registry)
        return any(one.exists() for one in kept)

    def for_its_owner(self) -> StateDir:
        """Refuse root in a directory of another user, since the service could not read files that root makes in
        it.

        Raises StateUnusable.
        """
        if os.geteuid() == 0 and self.path.is_dir() and (owner := self.path.stat().st_uid):
            who = _find_user_name(owner)
            raise StateUnusable(
                f"{self.path} belongs to {who}, a user that cannot read files of root in it; run the command as "
                f"that user (runuser -u {who} -- predrain ...)"
            )
        return self

    def say_url(self, url: str) -> None:
        """Write down the URL of the service atomically: a reader finds all of it or no file."""
        part = self.url.with_suffix(".part")
        part.write_text(f"{url}\n")
        part.replace(self.url)

    def find_service_url(self) -> str | None:
        """Return the URL of the running service that holds this directory, or None.

        A killed service leaves its URL behind. Another process may listen there by now, and must get neither
        requests nor a token.
        """
        try:
            url = self.url.read_text().strip()
        except OSError:
            return None
        return url if self._is_held() else None

    def _is_held(self) -> bool:
        try:
            handle = os.open(self._lock, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return True  # unknown, so the lock counts as held
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Hold the lock while the context lasts; the kernel releases it when the process dies. Raises StateInUse."""
        handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                owner = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
                raise StateInUse(
                    f"{self.path} is in use by process {owner}; stop it, or give --state another directory"
                ) from None
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
            yield
        finally:
            os.close(handle)

    def __enter__(self) -> StateDir:
        """Take the lock. Raises StateInUse, StateUnusable."""
        self.ensure_exists()
        with ExitStack() as held:
            held.enter_context(self.hold_lock())
            if self.restoring.exists():
                raise StateUnusable(
                    f"a restore into {self.path} did not end; empty it, and run `predrain restore` again"
                )
            self.url.unlink(missing_ok=True)
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lock."""
        self.url.unlink(missing_ok=True)
        self._held.close()


def _find_user_name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
