"""Where backups were written, and the newest that is still there: for who has lost what they hold."""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from predrain.service.backup.manifest import LONGEST, NAME, UnusableBackup, read
from predrain.service.state_directory import StateDir

USUAL: Final = Path("/srv/backup")
"""The folder of docs/how-to/back-up.md: releases before 0.2 did not note where they wrote."""
REMEMBERED: Final = 20
LOOKED_AT: Final = 40
"""Files whose manifests are read, newest first."""


def remember_backup(state: StateDir, file: Path) -> None:
    """Note where a backup was written. A state that cannot be written is left as it is: the backup counts."""
    try:
        lines = [*_noted(state), str(file.absolute())]
        noted = state.backups.with_suffix(".part")
        noted.write_text("".join(f"{line}\n" for line in list(dict.fromkeys(lines))[-REMEMBERED:]))
        owner = state.path.stat()
        if os.geteuid() == 0:
            os.chown(noted, owner.st_uid, owner.st_gid)
        noted.replace(state.backups)
    except OSError:
        return


def find_newest_backup(state: StateDir) -> tuple[Path, datetime] | None:
    """The newest backup beside those that were noted or in the usual folder, with the time it was made at (UTC)."""
    folders = {*(Path(line).parent for line in _noted(state)), USUAL}
    files = [(one.stat().st_mtime, one) for one in _archives(folders)]
    newest = sorted(files, reverse=True)[:LOOKED_AT]
    found = [(one, made_at) for _, one in newest if (made_at := _made_at(one)) is not None]
    return max(found, key=lambda made: (made[1], made[0])) if found else None


def _noted(state: StateDir) -> list[str]:
    try:
        return [line for line in state.backups.read_text().splitlines() if line.startswith("/")]
    except (OSError, UnicodeDecodeError):
        return []


def _archives(folders: set[Path]) -> Iterator[Path]:
    for folder in folders:
        with suppress(OSError):
            yield from (
                one for one in folder.iterdir() if one.name.endswith((".tar.gz", ".tgz")) and one.is_file()
            )


def _made_at(file: Path) -> datetime | None:
    """What the manifest says; None where the file is no backup of ours or cannot be read."""
    try:
        with tarfile.open(file, "r|gz") as archive:
            head = archive.next()
            if head is None or head.name != NAME or not head.isreg() or head.size > LONGEST:
                return None
            content = archive.extractfile(head)
            return read(content.read()).made_at if content is not None else None
    except (OSError, EOFError, zlib.error, tarfile.TarError, UnusableBackup):
        return None
