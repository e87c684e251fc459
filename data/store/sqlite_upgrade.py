"""Brings the file of a store to another version: its space is computed, the file is copied, its tables are changed.

The copy (`store.sqlite.v10` of version 10) is written under another name and flushed before it gets its own, so that a
copy that was cut off is never taken for a whole one. The tables are changed in one transaction, which leaves the old
version as it was until its end. A process that was killed at any point is followed by one that begins again. That one
keeps the copy of before if the copy holds exactly the rows of the file.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from sqlalchemy import Connection

from predrain.data.sqlite_file import BUSY_SECONDS
from predrain.data.store.migration_progress import MigrationProgress
from predrain.data.store.store_faults import StoreFull

PAGES_AT_ONCE: Final = 4_096
_UNTOUCHED_FROM: Final = 10
"""The lowest version from which an upgrade rewrites no row."""
_BARE_CHANGE_BYTES: Final = 1 << 20
_GROWTH_UP: Final = 1
"""The most by which file and write-ahead log grow in an upgrade, in sizes of the file: 0.77 from version 2, and 0.32
from version 5, on a file of 20 MB with readings, outlooks and latencies."""
_GROWTH_DOWN: Final = 5
"""The same for the way down, where documents get larger: 2.3 to version 10, and 4.8 to version 2."""
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class UpgradeSpace:
    """The bytes that a change from version `held` to version `to` takes on the disk of the store.

    `copy`: of the copy; 0 if a copy with the same rows is there. `change`: the most that the file and its write-ahead
    log grow by, while the tables change. `free`: of the disk, for this user.
    """

    held: int
    to: int
    copy: int
    change: int
    free: int

    @property
    def needed(self) -> int:
        """Return the bytes that have to be free before the change begins."""
        return self.copy + self.change

    def describe(self) -> str:
        """Return a clause for people, with all figures in MiB, rounded up."""
        copy, change, free = (-(-one // _MIB) for one in (self.copy, self.change, self.free))
        kept = f"{copy:,} MiB for a copy" if self.copy else "the copy is there already"
        needed = f"{copy + change:,} MiB beside it"
        return f"{needed} ({kept}, up to {change:,} MiB for the change), and {free:,} MiB are free"


def name_copy(path: Path, version: int) -> Path:
    """Return the file to which a store of that version is copied before its version changes."""
    return path.with_name(f"{path.name}.v{version}")


def compute_upgrade_space(path: Path, held: int, to: int) -> UpgradeSpace:
    """Return the space that the file, which has version `held`, needs to be brought to version `to`.

    A copy that is there is compared with the file: both are read. Raises sqlite3.Error, OSError.
    """
    with closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    size = pages * page_bytes
    copy = 0 if _holds_same_rows(path, name_copy(path, held)) else size
    growth = _GROWTH_DOWN if to < held else 0 if held >= _UNTOUCHED_FROM else _GROWTH_UP
    change = growth * size + _BARE_CHANGE_BYTES
    return UpgradeSpace(held, to, copy, change, shutil.disk_usage(path.absolute().parent).free)


def change_file_version(path: Path, connection: Connection, held: int, to: int) -> None:
    """Bring the file from version `held` to `to`, in the transaction in which `connection` writes, after copying it.

    Raises StoreFull, with nothing changed, if the space is not there or the copy cannot be written.
    """
    from predrain.data.store import migrations

    with MigrationProgress(str(path), held, to) as progress:
        try:
            space = compute_upgrade_space(path, held, to)
            _require_space(path, space)
            structlog.get_logger().info(
                "the store is brought to another version",
                store=str(path),
                from_version=held,
                to_version=to,
                copy=str(name_copy(path, held)),
                copy_bytes=space.copy,
                change_bytes=space.change,
                free_bytes=space.free,
            )
            begun = _name_unfinished_copy(path, held)
            begun.unlink(missing_ok=True)
            if space.copy:
                _copy_file(path, begun, progress)
                begun.replace(name_copy(path, held))
                flush_folder(path.absolute().parent)
        except (sqlite3.Error, OSError) as error:
            raise StoreFull(
                f"the store {path} cannot be copied before it is brought away from version {held} ({error}):"
                " make as much room beside it as it takes, and start again; nothing was changed"
            ) from error
        migrations.migrate_store_version(connection, to, progress.note_version)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _require_space(path: Path, space: UpgradeSpace) -> None:
    if space.needed > space.free:
        raise StoreFull(
            f"the store {path} has version {space.held}, and to bring it to version {space.to} takes"
            f" {space.describe()}: make room on that disk, and start again; nothing was changed"
        )


def _name_unfinished_copy(path: Path, version: int) -> Path:
    kept = name_copy(path, version)
    return kept.with_name(f"{kept.name}.part")


def _copy_file(path: Path, to: Path, progress: MigrationProgress) -> None:
    """Copy the whole file to a new one and flush it. The caller holds the file against other writers.

    Raises sqlite3.Error, OSError.
    """
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(to)) as copy:
        copy.execute("PRAGMA synchronous = OFF")  # the file is flushed once, at the end
        source.backup(
            copy, pages=PAGES_AT_ONCE, progress=lambda _, left, pages: progress.note_copied(left, pages)
        )
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a write-ahead log beside it
    with to.open("rb") as file:
        os.fsync(file.fileno())


def _holds_same_rows(path: Path, copy: Path) -> bool:
    """Return whether the copy has the tables and rows of the file. A missing or damaged one does not have them."""
    if not copy.is_file():
        return False
    try:
        with closing(open_beside(path, copy)) as connection:
            schema = "SELECT type, name, sql FROM {}.sqlite_master ORDER BY type, name"
            mine, kept = (connection.execute(schema.format(of)).fetchall() for of in ("main", "beside"))
            names = [name for kind, name, _ in mine if kind == "table"]
            return mine == kept and all(_have_same_rows(connection, name) for name in names)
    except sqlite3.DatabaseError:
        return False


def _have_same_rows(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether a table has the same rows, under the same numbers, in both files."""
    rows = [connection.execute(f'SELECT count(*) FROM {of}."{name}"').fetchone() for of in ("main", "beside")]  # noqa: S608
    columns = [row[1] for row in connection.execute(f'PRAGMA main.table_info("{name}")')]
    mine, kept = (", ".join(f'{of}."{column}"' for column in columns) for of in ("m", "k"))
    (differs,) = connection.execute(
        f'SELECT EXISTS (SELECT 1 FROM main."{name}" AS m LEFT JOIN beside."{name}" AS k ON k.rowid = m.rowid'  # noqa: S608
        f" WHERE ({mine}) IS NOT ({kept}))"
    ).fetchone()
    return rows[0] == rows[1] and not differs


def open_beside(path: Path, copy: Path) -> sqlite3.Connection:
    """Open a store's file, with a copy of it as the schema `beside`. Neither is made if it is missing."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS)
    try:
        connection.execute("ATTACH ? AS beside", (f"{copy.absolute().as_uri()}?mode=rw",))
    except BaseException:
        connection.close()
        raise
    return connection
