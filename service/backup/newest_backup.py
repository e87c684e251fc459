"""The noted places of backups, and the newest backup there, for a person whose state is lost."""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from predrain.service.backup.manifest import LONGEST, NAME, UnusableBackup, parse_manifest
from predrain.service.config.state_directory import StateDir

USUAL: Final = Path("/srv/backup")
"""The folder of docs/how-to/back-up.md, which is searched because releases before 0.2 did not note where they wrote."""
REMEMBERED: Final = 20
LOOKED_AT: Final = 40
"""The most files whose manifests are read, newest first."""


def remember_backup(state: StateDir, file: Path) -> None:
    """Note where a backup was written. If the state cannot be written, it stays as it is: the backup itself matters."""
    try:
        lines = [*_read_noted_backups(state), str(file.absolute())]
        noted = state.backups.with_suffix(".part")
        noted.write_text("".join(f"{line}\n" for line in list(dict.fromkeys(lines))[-REMEMBERED:]))
        owner = state.path.stat()
        if os.geteuid() == 0:
            os.chown(noted, owner.st_uid, owner.st_gid)
        noted.replace(state.backups)
    except OSError:
        return


def find_newest_backup(state: StateDir) -> tuple[Path, datetime] | None:
    """Return the newest backup in the folders of noted backups and in the usual folder, with the time it was made at
    (UTC).

    Return None if there is none.
    """
    folders = {*(Path(line).parent for line in _read_noted_backups(state)), USUAL}
    files = [(one.stat().st_mtime, one) for one in _find_archives(folders)]
    newest = sorted(files, reverse=True)[:LOOKED_AT]
    found = [(one, made_at) for _, one in newest if (made_at := _made_at(one)) is not None]
    return max(found, key=lambda made: (made[1], made[0])) if found else None


def _read_noted_backups(state: StateDir) -> list[str]:
    try:
        return [line for line in state.backups.read_text().splitlines() if line.startswith("/")]
    except (OSError, UnicodeDecodeError):
        return []


def _find_archives(folders: set[Path]) -> Iterator[Path]:
    for folder in folders:
        with suppress(OSError):
            yield from (
                one for one in folder.iterdir() if one.name.endswith((".tar.gz", ".tgz")) and one.is_file()
            )


def _made_at(file: Path) -> datetime | None:
    """Return the time in the manifest, or None if the file is no backup of ours or cannot be read."""
    try:
        with tarfile.open(file, "r|gz") as archive:
            head = archive.next()
            if head is None or head.name != NAME or not head.isreg() or head.size > LONGEST:
                return None
            content = archive.extractfile(head)
            return parse_manifest(content.read()).made_at if content is not None else None
    except (OSError, EOFError, zlib.error, tarfile.TarError, UnusableBackup):
        return None
