"""The store of installed bundles, with the roles of two of them: the champion and the challenger.

The store is a folder of folders, each named by the SHA-256 of its bundle's SHA256SUMS. The file `roles.json` is
replaced in one step, so a reader sees the roles of before or of after, never a mixture. A bundle is verified at its
installation and at every lookup. So a file that was changed in place is refused even if its checksums fit.
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
from predrain.models.deploy.bundle_trial import BundleTrials
from predrain.models.forecast.bundle import FILES, OPTIONAL, SUMS, Bundle, CorruptBundle

REMEMBERED: Final = 10
"""Number of former champions to which a rollback can return."""
TRIED: Final = "tried.json"
"""The file of verdicts about bundles from outside (models.deploy.bundle_trial), beside the installed bundles."""
_ROLES: Final = "roles.json"


class NoSuchBundle(Refusal):
    """There is no bundle to promote, to compare or to go back to."""


class BundleRoles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The bundles that score, by digest."""

    line: tuple[str, ...] = ()
    """The promoted bundles; the last is the champion. Empty: the bundle of the settings scores, or the one
    that ships."""
    challenger: str | None = None

    @property
    def champion(self) -> str | None:
        """The bundle that scores; None means the bundle of the settings."""
        return self.line[-1] if self.line else None


class BundleStore:
    """The store in the folder `path`, which is created at the first installation. Any number of processes may
    use it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._trials = BundleTrials(path / TRIED)

    def roles(self) -> BundleRoles:
        """Return the bundles that score now. Raises CorruptBundle."""
        try:
            return msgspec.json.decode((self.path / _ROLES).read_bytes(), type=BundleRoles)
        except FileNotFoundError:
            return BundleRoles()
        except (OSError, msgspec.MsgspecError) as error:
            raise CorruptBundle(
                f"{self.path / _ROLES} cannot be read ({error}); remove it and promote again."
            ) from None

    def verify_folder(self, digest: str) -> Path:
        """Return the folder of an installed bundle after a check that it is unchanged. Raises CorruptBundle.

        The check covers SHA256SUMS. `Bundle.load` verifies the other files against it.
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
        """Verify a bundle, try it, and copy it into the store. Return its digest. Raises CorruptBundle."""
        self._trials.check(folder)
        Bundle.load(folder)
        digest = digest_of(folder)
        with self._alone():
            if _is_intact_bundle(self.path / digest, digest):
                return digest
            with tempfile.TemporaryDirectory(dir=self.path) as kept:
                copy = Path(kept) / "bundle"
                copy.mkdir()
                for name in (*FILES, *OPTIONAL, SUMS):
                    if (folder / name).exists():
                        _write_file_synced(copy / name, (folder / name).read_bytes())
                if not _is_intact_bundle(copy, digest):
                    raise CorruptBundle(f"{folder} changed while it was copied; try again.")
                shutil.rmtree(self.path / digest, ignore_errors=True)
                copy.rename(self.path / digest)
        return digest

    def promote(self, digest: str) -> BundleRoles:
        """Make an installed bundle the champion. If it was the challenger, there is no challenger any more.
        Raises CorruptBundle."""
        self.verify_folder(digest)

        def promoted(roles: BundleRoles) -> BundleRoles:
            line = roles.line if roles.champion == digest else (*roles.line, digest)
            challenger = None if roles.challenger == digest else roles.challenger
            return BundleRoles(line[-REMEMBERED:], challenger)

        return self._change(promoted)

    def challenge(self, digest: str | None) -> BundleRoles:
        """Make an installed bundle the challenger, or have none. It is scored beside the champion without effect.

        Raises CorruptBundle, NoSuchBundle.
        """
        if digest is not None:
            self.verify_folder(digest)

        def challenged(roles: BundleRoles) -> BundleRoles:
            if digest is not None and digest == roles.champion:
                raise NoSuchBundle("That bundle is champion already; name another one as its challenger.")
            return BundleRoles(roles.line, digest)

        return self._change(challenged)

    def rollback(self) -> BundleRoles:
        """Make the previous champion the champion. Raises NoSuchBundle."""

        def before(roles: BundleRoles) -> BundleRoles:
            if not roles.line:
                raise NoSuchBundle("Nothing was promoted here, so there is nothing to go back to.")
            return BundleRoles(roles.line[:-1], roles.challenger)

        return self._change(before)

    def _change(self, change: Callable[[BundleRoles], BundleRoles]) -> BundleRoles:
        with self._alone():
            roles = change(self.roles())
            _write_file_synced(self.path / f"{_ROLES}.new", msgspec.json.encode(roles))
            (self.path / f"{_ROLES}.new").replace(self.path / _ROLES)
            _sync_folder(self.path)
            for folder in self.path.iterdir():
                if folder.is_dir() and folder.name not in (*roles.line, roles.challenger):
                    shutil.rmtree(folder, ignore_errors=True)
        return roles

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the store, so that only one process changes it at a time."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def digest_of(folder: Path) -> str:
    """Return the SHA-256 of a bundle's SHA256SUMS, which covers all of its content. Raises CorruptBundle."""
    try:
        return hashlib.sha256((folder / SUMS).read_bytes()).hexdigest()
    except OSError:
        raise CorruptBundle(
            f"{folder} holds no bundle (no {SUMS}); name a folder made by `predrain train --out`."
        ) from None


def _is_intact_bundle(folder: Path, digest: str) -> bool:
    try:
        Bundle.load(folder)
        return digest_of(folder) == digest
    except CorruptBundle:
        return False


def _write_file_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
