"""Taking a backup while the service runs: databases by SQLite's online copy, all other files as they are.

The log is copied before the store. So a record that is done in the copy of the log is in the copy of the store. Records
that came in between are in both copies; to process such a record again changes nothing.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from predrain.data.refusal import Refusal
from predrain.data.sqlite_file import BUSY_SECONDS
from predrain.service.backup.backup_signature import signature_of, signing_key
from predrain.service.backup.manifest import (
    FOLDER,
    FORMAT,
    NAME,
    SETTINGS,
    SIGNATURE,
    BackupFile,
    Manifest,
    is_valid_state_path,
)
from predrain.service.config.state_directory import StateDir

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

_SQLITE = b"SQLite format 3\0"
_PASSING = re.compile(r"-(wal|shm|journal)$|\.(part|new)$|\.v\d+$")
"""Files that are not copied: the side files of a database, unfinished files, and files that an upgrade put aside."""


class CannotBackUp(Refusal):
    """The state cannot be read, or the backup cannot be written. There is no backup, and the service goes on."""


def take_backup(
    state: StateDir,
    out: Path,
    settings: str,
    elsewhere: tuple[str, ...],
    version: str,
    now: datetime,
    key: Path | None = None,
) -> Manifest:
    """Write a backup of `state` into the new file `out` (mode 0600). Return its manifest. The folder of `out` must have
    space for the state twice.

    settings: text of the settings file, without secrets. elsewhere: the data on servers. key: file of the private key
    that signs the backup, if it is not the state's own. Raises CannotBackUp, BackupKeyUnusable.
    """
    if not os.access(out.parent, os.W_OK | os.X_OK):
        raise CannotBackUp(
            f"{out.parent} is no folder that this user may write; make it, or give --out another one"
        )
    if out.exists():
        raise CannotBackUp(f"{out} is there already; give --out a name that is free")
    if not state.is_one():
        raise CannotBackUp(f"{state.path} holds no state; say --state or --config")
    if out.absolute().is_relative_to(state.path.absolute()):
        raise CannotBackUp(
            f"{out} is inside the state: it would be lost with it, and be in every later backup; give --out a place"
            " outside"
        )
    begun = out.with_name(f"{out.name}.part")
    try:
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=".predrain-backup-") as kept:
            copies = Path(kept)
            (copies / SETTINGS).write_text(settings, encoding="utf-8")
            for name in _list_state_files(state):
                _copy_state_file(state.path / name, copies / name)
            files = tuple(
                _build_file_entry(copies, path) for path in sorted(copies.rglob("*")) if path.is_file()
            )
            manifest = Manifest(FORMAT, version, now, elsewhere, files)
            _write_archive(manifest, copies, begun, signing_key(state, key))
            begun.rename(out)
    except OSError as error:
        raise CannotBackUp(
            f"the backup cannot be written ({error}); make room beside {out} for the state twice, as a user who may"
            " read the state"
        ) from error
    finally:
        begun.unlink(missing_ok=True)
    return manifest


def _list_state_files(state: StateDir) -> Iterator[Path]:
    """Yield the paths to copy, relative to the state directory, the log first. Other files there (`.pgpass`) are
    secrets or rubbish, and no restore would accept them.
    """
    found = [path for path in sorted(state.path.rglob("*")) if path.is_file() and not path.is_symlink()]
    for path in sorted(found, key=lambda path: path != state.log):
        name = path.relative_to(state.path)
        if (
            is_valid_state_path(str(name))
            and str(name) != SETTINGS
            and name.name != "lock"
            and not _PASSING.search(name.name)
        ):
            yield name


def _copy_state_file(path: Path, to: Path) -> None:
    """Copy one file of the state. A file that disappears meanwhile, such as a replaced bundle, is left out.

    Raises CannotBackUp, OSError.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("rb") as file:
            begin = file.read(len(_SQLITE))
            if begin and begin != _SQLITE and path.suffix == ".sqlite":
                raise CannotBackUp(_describe_damage(path, "file is not a database"))
            if begin != _SQLITE:
                to.write_bytes(begin + file.read())
                return
    except FileNotFoundError:
        return
    try:
        with (
            closing(
                sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS)
            ) as source,
            closing(sqlite3.connect(to)) as copy,
        ):
            copy.execute("PRAGMA synchronous = OFF")  # the archive is flushed at the end
            source.backup(copy)
            (sound,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise CannotBackUp(
            f"{path} cannot be copied ({error}); see that it is whole, and that there is room beside the backup"
        ) from error
    if sound != "ok":
        raise CannotBackUp(_describe_damage(path, sound))


def _describe_damage(path: Path, why: str) -> str:
    return f"{path} is damaged ({why}); bring it back from an older backup"


def _build_file_entry(copies: Path, path: Path) -> BackupFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return BackupFile(path.relative_to(copies).as_posix(), path.stat().st_size, digest)


def _write_archive(manifest: Manifest, copies: Path, out: Path, key: OKPKey) -> None:
    handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    # Documents are compressed already: a higher level saves nothing.
    with os.fdopen(handle, "wb") as file:
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as archive:
            written = msgspec.json.encode(manifest)
            for name, content in ((NAME, written), (SIGNATURE, signature_of(written, key))):
                head = tarfile.TarInfo(name)
                head.size, head.mode = len(content), 0o600
                archive.addfile(head, io.BytesIO(content))
            for one in manifest.files:
                member = tarfile.TarInfo(FOLDER + one.name)
                member.size, member.mode = one.size, 0o600
                with (copies / one.name).open("rb") as copy:
                    archive.addfile(member, copy)
        file.flush()
        os.fsync(file.fileno())
