"""Restoring a state directory from a backup: all of it, verified before it is put in place, or nothing."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import zlib
from contextlib import closing
from pathlib import Path

from predrain.data.clock import Clock
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.access.audit import THIS_MACHINE, Audit, AuditedCall
from predrain.service.access.canonical_requests import describe_act
from predrain.service.backup.backup_signature import BackupAuthority
from predrain.service.backup.manifest import (
    FOLDER,
    LONGEST,
    NAME,
    SIGNATURE,
    SIGNED,
    BackupFile,
    Manifest,
    UnusableBackup,
    parse_manifest,
)
from predrain.service.config.state_directory import StateDir, StateUnusable
from predrain.service.storage.audit_ends import RESTORE

_PIECE = 1 << 20
LONGEST_SIGNATURE = 10_000
"""The most bytes of a signature."""


def restore_backup(
    file: Path, state: StateDir, authority: BackupAuthority, *, by: str, clock: Clock
) -> Manifest:
    """Unpack the backup `file` into the empty directory of `state`, which is made if it is missing. Return the
    manifest.

    Nothing is unpacked before `authority` accepts it. Databases are opened, and brought to this predrain's format,
    before they are put in place. The restored audit says `by` whom, and which key or trust vouched for the backup.

    Raises UnusableBackup, NotTrusted, BackupKeyUnusable, StateUnusable, StateInUse, and what a database of a newer
    predrain or a damaged one raises.
    """
    state.for_its_owner().ensure_exists()
    with state.hold_lock():
        there = sorted({one.name for one in state.path.iterdir()} - {"lock", state.restoring.name})
        if there:
            raise StateUnusable(
                f"{state.path} is not empty ({there[0]}); give --state a directory that is new or empty, nothing is"
                " ever restored over what is there"
            )
        shutil.rmtree(state.restoring, ignore_errors=True)
        try:
            state.restoring.mkdir(mode=0o700)
            manifest, vouched = _unpack_archive(file, state.restoring, authority)
            restored = StateDir(state.restoring)
            _verify_databases(restored)
            _record_restore(restored, manifest, vouched, authority, by, clock)
            for one in sorted(state.restoring.iterdir()):
                one.rename(state.path / one.name)
        except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise StateUnusable(
                    f"the backup {file} cannot be restored: {error}; nothing was put in place"
                ) from error
            raise UnusableBackup(
                f"the backup {file} is damaged or cut short ({error}); take another one"
            ) from error
        finally:
            shutil.rmtree(state.restoring, ignore_errors=True)
    return manifest


def _unpack_archive(file: Path, folder: Path, authority: BackupAuthority) -> tuple[Manifest, str]:
    """Unpack exactly the files that the manifest names. Return the manifest and the id of the key that vouches for it,
    or "" if none does. Raises UnusableBackup, NotTrusted, BackupKeyUnusable, and what reading raises.
    """
    with tarfile.open(file, "r|gz") as archive:
        head = archive.next()
        if head is None or head.name != NAME or not head.isreg() or head.size > LONGEST:
            raise UnusableBackup(f"{file} is no backup of predrain's; name one that `predrain backup` made")
        written = _read_member(archive, head)
        manifest = parse_manifest(written)
        signature = _read_signature(archive, file) if manifest.format >= SIGNED else None
        vouched = authority.check(written, signature, (one.name for one in manifest.files))
        if manifest.size > (free := shutil.disk_usage(folder).free):
            raise UnusableBackup(
                f"the backup unpacks to {manifest.size:,} bytes and there are {free:,} free; make room"
            )
        for one in manifest.files:
            member = archive.next()
            if member is None:
                raise UnusableBackup(
                    f"the backup {file} is cut short: {one.name} is missing; take another one"
                )
            if member.name != FOLDER + one.name or not member.isreg() or member.size != one.size:
                raise UnusableBackup(
                    f"the backup {file} holds {member.name!r} where {one.name} should be: do not trust it"
                )
            _extract_member(archive, member, one, folder)
        if archive.next() is not None:
            raise UnusableBackup(f"the backup {file} holds more than it names: do not trust it")
    return manifest, vouched


def _read_signature(archive: tarfile.TarFile, file: Path) -> bytes:
    member = archive.next()
    if member is None or member.name != SIGNATURE or not member.isreg() or member.size > LONGEST_SIGNATURE:
        raise UnusableBackup(f"the backup {file} has no signature where it should have one: do not trust it")
    return _read_member(archive, member)


def _record_restore(
    restored: StateDir, manifest: Manifest, vouched: str, authority: BackupAuthority, by: str, clock: Clock
) -> None:
    """Record the restore in the audit of the restored store. A backup without a store has no audit."""
    if not restored.store.exists():
        return
    trusted = sorted(authority.trusted) if not vouched else []
    said = {
        "made_at": manifest.made_at.isoformat(),
        "predrain": manifest.predrain,
        "signed_by": vouched or None,
        "trusted": trusted,
    }
    with closing(SqliteStore(restored.store)) as store:
        Audit(store, clock).write(AuditedCall(by, THIS_MACHINE, describe_act(RESTORE, said), "done"))


def _read_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    content = archive.extractfile(member)
    return content.read() if content is not None else b""


def _extract_member(archive: tarfile.TarFile, member: tarfile.TarInfo, one: BackupFile, folder: Path) -> None:
    content = archive.extractfile(member)
    assert content is not None  # a regular file
    to, digest = folder / one.name, hashlib.sha256()
    to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as out:
        while piece := content.read(_PIECE):
            digest.update(piece)
            out.write(piece)
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() != one.sha256:
        raise UnusableBackup(f"{one.name} in the backup is not what its checksum says: take another backup")


def _verify_databases(restored: StateDir) -> None:
    """Open the restored log and store, so that this predrain can work with them. Raises what log and store raise."""
    if restored.log.exists():
        SqliteLog(restored.log).close()
    if restored.store.exists():
        SqliteStore(restored.store).close()
