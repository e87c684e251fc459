"""The part that log and store share: making a SQLite file durable, and the meaning of its errors."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from enum import Enum
from pathlib import Path

BUSY_SECONDS = 30.0
"""Time that a writer waits for another process, in seconds."""

_PAUSE_SECONDS = 0.05
_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "journal_size_limit = 67108864")


class SqliteFault(Enum):
    """The fault of the file, as far as the cure differs."""

    NO_ROOM = "the disk is full, has failed, or may not be written"
    HELD = "another process holds the file"
    BROKEN = "the file is damaged or no database"


_UNDECODED = "Could not decode to UTF-8"

_FAULTS = {
    sqlite3.SQLITE_FULL: SqliteFault.NO_ROOM,
    sqlite3.SQLITE_IOERR: SqliteFault.NO_ROOM,
    sqlite3.SQLITE_READONLY: SqliteFault.NO_ROOM,
    sqlite3.SQLITE_CANTOPEN: SqliteFault.NO_ROOM,
    sqlite3.SQLITE_PERM: SqliteFault.NO_ROOM,
    sqlite3.SQLITE_BUSY: SqliteFault.HELD,
    sqlite3.SQLITE_PROTOCOL: SqliteFault.HELD,
    sqlite3.SQLITE_CORRUPT: SqliteFault.BROKEN,
    sqlite3.SQLITE_NOTADB: SqliteFault.BROKEN,
}


def classify_sqlite_error(error: BaseException | None) -> SqliteFault | None:
    """Return the fault that a SQLite error means; None if it is about something else (a wrong statement)."""
    if not isinstance(error, sqlite3.Error):
        return None
    if _UNDECODED in str(error):  # the driver's own error, which has no code of SQLite's
        return SqliteFault.BROKEN
    return _FAULTS.get(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF)


def make_durable(connection: sqlite3.Connection) -> None:
    """Set the connection to a write-ahead log that is flushed at every commit.

    `connection` must be in no transaction.

    SQLite does not wait while another process turns the same new file into a write-ahead log, or closes it as the
    last one. It then answers "locked" at once, so this function waits.
    """
    for pragma in _PRAGMAS:
        for left in reversed(range(int(BUSY_SECONDS / _PAUSE_SECONDS))):
            try:
                connection.execute(f"PRAGMA {pragma}").close()
                break
            except sqlite3.OperationalError as error:
                if classify_sqlite_error(error) is not SqliteFault.HELD or not left:
                    raise
                time.sleep(_PAUSE_SECONDS)


def find_damage(path: Path) -> str | None:
    """Return the first finding of `PRAGMA quick_check` in an existing file, or None if all of its pages are whole.

    Every page is read once: 270 MB/s from memory, or the speed of the disk. Raises sqlite3.Error for other errors
    (the file is held, or cannot be read).
    """
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS)
        ) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        if classify_sqlite_error(error) is SqliteFault.BROKEN:
            return str(error)
        raise
    return None if found == ("ok",) else " ".join(str(found and found[0]).split())
