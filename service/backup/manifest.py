"""The manifest of a backup: the first file of the archive, which is read before any other file is unpacked.

A backup is a gzipped tar: `manifest.json`, `manifest.sig` (service.backup.backup_signature; there is none up
to format 1), then `state/NAME` for each file of the manifest, in its order.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import PurePosixPath

import msgspec

from predrain.data.refusal import Refusal

FORMAT = 2
SIGNED = 2
"""The first format that has a signature."""
NAME = "manifest.json"
SIGNATURE = "manifest.sig"
FOLDER = "state/"
SETTINGS = "settings.toml"
LONGEST = 4 << 20
"""The most bytes of a manifest. It has one line per file, and a state has some dozens of files."""
PRIVATE_KEY, PUBLIC_KEY = "backup.key", "backup.pub"
OF_ONE_START = frozenset({"lock", "url", "token", PRIVATE_KEY, PUBLIC_KEY})
"""Files of a state directory that are not backed up, because each start or each state makes its own: the lock, the
address, the token with all rights, and the key pair that signs backups. A backup that contained the private key could
vouch for itself.
"""

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}")


class UnusableBackup(Refusal):
    """The file is no backup, is damaged, or was made by a newer predrain; nothing was restored."""


class BackupFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of the state: its path below the state directory, its size in bytes and its SHA-256 in hex."""

    name: str
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of a backup. `elsewhere`: what the service keeps on servers, which a backup does not hold."""

    format: int
    predrain: str
    made_at: datetime
    elsewhere: tuple[str, ...]
    files: tuple[BackupFile, ...]

    @property
    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(one.size for one in self.files)


class _Format(msgspec.Struct, frozen=True):
    format: int


def parse_manifest(written: bytes) -> Manifest:
    """Return the manifest of these bytes. All its names lead into the state directory. Raises UnusableBackup."""
    try:
        format_ = msgspec.json.decode(written, type=_Format).format
        if format_ > FORMAT:
            raise UnusableBackup(
                f"the backup has format {format_} and this predrain knows {FORMAT}: restore it with the predrain that"
                " made it, or a newer one"
            )
        found = msgspec.json.decode(written, type=Manifest)
    except msgspec.MsgspecError as error:
        raise UnusableBackup(f"the file is no backup of predrain's ({error}); name one") from error
    names = [one.name for one in found.files]
    for name in names:
        if not is_valid_state_path(name):
            raise UnusableBackup(
                f"the backup names a file {name!r}, which none of ours does: do not trust it"
            )
    if len({*names}) < len(names) or any(one.size < 0 for one in found.files):
        raise UnusableBackup("the backup names a file twice, or one of no size: do not trust it")
    return found


def is_valid_state_path(name: str) -> bool:
    """Return whether a file of ours may have this path in the state directory.

    No part of a path begins with a dot, and no path leads out of the directory.
    """
    parts = name.split("/")
    plain = all(_PLAIN.fullmatch(part) for part in parts)
    return plain and str(PurePosixPath(name)) == name and name not in OF_ONE_START
