"""What can be wrong with a store's file, as sentences with the cure."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from data.refusal import Refusal
from data.wire.shape import Misshapen


class StoreUnreadable(Refusal):
    """The file is damaged, is no store, or was written by a newer predrain."""


class StoreFull(Refusal):
    """The file cannot take more; what was saved before is safe."""


class StoreBusy(Refusal):
    """Another process has held the file for too long; nothing was changed."""


_NO_ROOM = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
}
_HELD = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL}
_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


@contextmanager
def explained(name: str) -> Iterator[None]:
    """SQLite's errors about the store `name` as sentences; other errors pass as they are."""
    try:
        yield
    except DBAPIError as error:
        code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _NO_ROOM:
            raise StoreFull(
                f"the store {name} cannot be written ({error.orig}): make room on its disk or make it"
                " writable; what was saved before is safe"
            ) from error
        if code in _HELD:
            raise StoreBusy(
                f"the store {name} has been held by another process for too long ({error.orig}): see which"
                " with `fuser`, and try again; nothing was changed"
            ) from error
        if code in _BROKEN:
            raise StoreUnreadable(
                f"the store {name} is damaged or no store ({error.orig}): bring it back from a backup, or"
                " move it away and start again"
            ) from error
        raise


@contextmanager
def legible(name: str, what: str) -> Iterator[None]:
    """A document that cannot be read is damage, too."""
    try:
        yield
    except Misshapen as error:
        raise StoreUnreadable(
            f"the store {name} holds a document in {what} that cannot be read ({error}): bring the store back"
            " from a backup, or move it away and start again"
        ) from error
