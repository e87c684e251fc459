"""What the log and the store share: how a SQLite file is made durable, and what its errors mean."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from enum import Enum
from pathlib import Path

BUSY_SECONDS = 30.0
"""How long a writer waits for another process."""

_PAUSE_SECONDS = 0.05
_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "journal_size_limit = 67108864")


class SqliteFault(Enum):
    """What is wrong, as far as the cure differs."""

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


def fault(error: BaseException | None) -> SqliteFault | None:
    """What a SQLite error says of the file; None when it is about something else (a wrong statement)."""
    if not isinstance(error, sqlite3.Error):
        return None
    if _UNDECODED in str(error):  # the driver's own error, which carries no code of SQLite's
        return SqliteFault.BROKEN
    return _FAULTS.get(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF)


def make_durable(connection: sqlite3.Connection) -> None:
    """Write-ahead log, flushed at every commit. `connection` must be in no transaction.

    SQLite does not wait while another process turns the same new file into a write-ahead log, or closes it as
    the last one: there it answers "locked" at once, so that the waiting is done here.
    """
    for pragma in _PRAGMAS:
        for left in reversed(range(int(BUSY_SECONDS / _PAUSE_SECONDS))):
            try:
                connection.execute(f"PRAGMA {pragma}").close()
                break
            except sqlite3.OperationalError as error:
                if fault(error) is not SqliteFault.HELD or not left:
                    raise
                time.sleep(_PAUSE_SECONDS)


def find_damage(path: Path) -> str | None:
    """What `PRAGMA quick_check` finds first in an existing file, or None when all of its pages are whole.

    Every page is read once: 270 MB a second from memory, as fast as the disk reads where it is not there. Raises
    sqlite3.Error for what is no damage (the file is held, cannot be read).
    """
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS)
        ) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        if fault(error) is SqliteFault.BROKEN:
            return str(error)
        raise
    return None if found == ("ok",) else " ".join(str(found and found[0]).split())
