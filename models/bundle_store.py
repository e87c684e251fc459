"""The shelf: bundles installed where a service loads them, and which of them is champion, which challenger.

A folder of folders, each named by the SHA-256 of its bundle's SHA256SUMS, and `roles.json`, which is replaced in one
step: a reader sees the roles of before or of after, never a mixture. A bundle is verified when it comes and again
whenever it is looked up, so that a file changed in place is refused even with checksums made to fit.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from predrain.data.refusal import Refusal
from predrain.models.bundle import FILES, OPTIONAL, SUMS, Bundle, CorruptBundle
from predrain.models.bundle_trial import Trials

REMEMBERED: Final = 10
"""Champions that a rollback can go back through."""
TRIED: Final = "tried.json"
"""Verdicts about bundles from outside (models.bundle_trial), beside those that are installed."""
_ROLES: Final = "roles.json"


class NoSuchBundle(Refusal):
    """Nothing is there to promote, to compare or to go back to."""


class Roles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which bundles score, by digest."""

    line: tuple[str, ...] = ()
    """Promoted ones, the last of which is champion; empty: the bundle of the settings, or the one that ships."""
    challenger: str | None = None

    @property
    def champion(self) -> str | None:
        """The bundle that scores; None: the one of the settings."""
        return self.line[-1] if self.line else None


class Shelf:
    """The folder `path`; it is made when something is installed. Any number of processes may use it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._trials = Trials(path / TRIED)

    def roles(self) -> Roles:
        """Who scores now. Raises CorruptBundle."""
        try:
            return msgspec.json.decode((self.path / _ROLES).read_bytes(), type=Roles)
        except FileNotFoundError:
            return Roles()
        except (OSError, msgspec.MsgspecError) as error:
            raise CorruptBundle(
                f"{self.path / _ROLES} cannot be read ({error}); remove it and promote again."
            ) from None

    def folder(self, digest: str) -> Path:
        """Where an installed bundle lies, as it was installed. Raises CorruptBundle.

        Its other files are verified against SHA256SUMS by who loads it.
        """
        folder = self.path / digest
        if digest != digest_of(folder):
            raise CorruptBundle(
                f"{folder} is not the bundle that was installed; promote it again, or go back to the one before "
                "with `predrain models rollback`."
            )
        self._trials.check(folder)
        return folder

    def install(self, folder: Path) -> str:
        """Verify a bundle, try it, and copy it here; returns its digest. Raises CorruptBundle."""
        self._trials.check(folder)
        Bundle.load(folder)
        digest = digest_of(folder)
        with self._alone():
            if _whole(self.path / digest, digest):
                return digest
            with tempfile.TemporaryDirectory(dir=self.path) as kept:
                copy = Path(kept) / "bundle"
                copy.mkdir()
                for name in (*FILES, *OPTIONAL, SUMS):
                    if (folder / name).exists():
                        _write(copy / name, (folder / name).read_bytes())
                if not _whole(copy, digest):
                    raise CorruptBundle(f"{folder} changed while it was copied; try again.")
                shutil.rmtree(self.path / digest, ignore_errors=True)
                copy.rename(self.path / digest)
        return digest

    def promote(self, digest: str) -> Roles:
        """Make an installed bundle champion; a challenger that it was is none any more. Raises CorruptBundle."""
        self.folder(digest)

        def promoted(roles: Roles) -> Roles:
            line = roles.line if roles.champion == digest else (*roles.line, digest)
            challenger = None if roles.challenger == digest else roles.challenger
            return Roles(line[-REMEMBERED:], challenger)

        return self._change(promoted)

    def challenge(self, digest: str | None) -> Roles:
        """Let an installed bundle be scored in the champion's shadow, or none. Raises CorruptBundle, NoSuchBundle."""
        if digest is not None:
            self.folder(digest)

        def challenged(roles: Roles) -> Roles:
            if digest is not None and digest == roles.champion:
                raise NoSuchBundle("That bundle is champion already; name another one as its challenger.")
            return Roles(roles.line, digest)

        return self._change(challenged)

    def rollback(self) -> Roles:
        """Make the champion before champion again. Raises NoSuchBundle."""

        def before(roles: Roles) -> Roles:
            if not roles.line:
                raise NoSuchBundle("Nothing was promoted here, so there is nothing to go back to.")
            return Roles(roles.line[:-1], roles.challenger)

        return self._change(before)

    def _change(self, change: Callable[[Roles], Roles]) -> Roles:
        with self._alone():
            roles = change(self.roles())
            _write(self.path / f"{_ROLES}.new", msgspec.json.encode(roles))
            (self.path / f"{_ROLES}.new").replace(self.path / _ROLES)
            _flush(self.path)
            for folder in self.path.iterdir():
                if folder.is_dir() and folder.name not in (*roles.line, roles.challenger):
                    shutil.rmtree(folder, ignore_errors=True)
        return roles

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One change at a time, over all processes."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def digest_of(folder: Path) -> str:
    """SHA-256 of a bundle's SHA256SUMS, which names all of its content. Raises CorruptBundle."""
    try:
        return hashlib.sha256((folder / SUMS).read_bytes()).hexdigest()
    except OSError:
        raise CorruptBundle(
            f"{folder} holds no bundle (no {SUMS}); name a folder made by `predrain train --out`."
        ) from None


def _whole(folder: Path, digest: str) -> bool:
    try:
        Bundle.load(folder)
        return digest_of(folder) == digest
    except CorruptBundle:
        return False


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _flush(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
