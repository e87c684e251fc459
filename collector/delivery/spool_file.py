"""The spool's file. One process owns it, every commit is durable, and a damaged file is moved aside."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TypeVar

import structlog

from predrain.data.refusal import Refusal
from predrain.data.sqlite_file import SqliteFault, classify_sqlite_error, make_durable

T = TypeVar("T")

FORMAT = 1
"""Version of the format, kept in the file's `user_version`; 0 is a new file."""

_COMPANIONS = ("-wal", "-shm")
_FREE_PAGES = 1024
# With AUTOINCREMENT a number is never given twice, even after its entry was delivered. `born` is the spool's
# own age in seconds.
_TABLES = """
CREATE TABLE entries (
  number INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, key TEXT NOT NULL, born INTEGER NOT NULL,
  holds INTEGER NOT NULL, tells INTEGER NOT NULL, value BLOB NOT NULL);
CREATE INDEX entries_by_topic ON entries (topic, number, key);
CREATE TABLE numbers (name TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
"""


class SpoolDiskFull(Refusal):
    """The spool's disk is full, has failed, or is not writable."""


class SpoolUnusable(Refusal):
    """Another process has the spool, or a newer predrain wrote it."""


class _Damaged(Exception):
    """The file is damaged or is no database."""


class SpoolFile:
    """The spool at `path`, locked against a second collector for as long as it is open.

    Raises SpoolUnusable when another process has the spool or its format is newer, and SpoolDiskFull when it cannot
    be made. A damaged file is renamed to `PATH.damaged`, which replaces an earlier one, and a new file is begun.
    """

    def __init__(self, path: Path, random: Random) -> None:
        self._path, self._random = path, random
        self._last_number = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(
                path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise SpoolDiskFull(
                f"the spool {path} cannot be made: {error.strerror}; name one in a folder that may be written"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._connection: sqlite3.Connection | None = self._opened()
        except BlockingIOError:
            os.close(self._lock)
            raise SpoolUnusable(
                f"another collector has the spool {path}: stop it, or name another spool"
            ) from None
        except BaseException:
            os.close(self._lock)
            raise

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in one transaction: durable when it returns, undone when it raises. Raises SpoolDiskFull."""

        def transaction(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # SQLite undoes some failures by itself
                    connection.execute("ROLLBACK")
                raise
            return result

        result = self.read(transaction)
        self._last_number = max(self._last_number, self.read(_last_number))
        return result

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of `work` on the file. If the file turns out to be damaged, a new one is begun and used.

        Raises SpoolDiskFull.
        """
        try:
            with self._explained():
                return work(self._there())
        except _Damaged as damage:
            self._let_go()
            self._move_aside(damage)
            with self._explained():
                return work(self._there())

    def give_back(self) -> None:
        """Return whole free pages to the file system. Raises SpoolDiskFull."""
        # `execute` would do one step only, which frees one page.
        self.read(lambda connection: connection.executescript(f"PRAGMA incremental_vacuum({_FREE_PAGES})"))

    def close(self) -> None:
        """Close the file and release the lock."""
        self._let_go()
        os.close(self._lock)

    def _there(self) -> sqlite3.Connection:
        """Return the connection.

        Open it again if a damaged file could not be replaced before because the disk was full.
        """
        if self._connection is None:
            self._connection = self._opened()
        return self._connection

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except _Damaged as damage:
            self._move_aside(damage)
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        with self._explained():
            connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            with self._explained():
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # obeyed only while the file is new
                make_durable(connection)
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                if version > FORMAT:
                    raise SpoolUnusable(
                        f"the spool {self._path} has format {version} and this predrain knows {FORMAT}:"
                        " update predrain, or name another spool"
                    )
                (check,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                if check != "ok":
                    raise _Damaged(check)
                if version == 0:
                    self._create(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _create(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for statement in _TABLES.strip().split(";\n"):
            connection.execute(statement)
        # A batch that was taken from a file that is damaged since must not settle an entry of this file.
        connection.execute(
            "INSERT INTO sqlite_sequence (name, seq) VALUES ('entries', ?)", (self._last_number,)
        )
        connection.execute("INSERT INTO numbers VALUES ('identity', ?)", (self._random.getrandbits(32),))
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")

    def _move_aside(self, damage: _Damaged) -> None:
        aside = self._path.with_name(self._path.name + ".damaged")
        for ending in ("", *_COMPANIONS):
            part = self._path.with_name(self._path.name + ending)
            try:
                if part.exists():
                    part.replace(aside.with_name(aside.name + ending))
            except OSError as error:
                raise SpoolDiskFull(
                    f"the spool {self._path} is damaged ({damage}) and cannot be moved aside ({error.strerror}): look"
                    " at the disk that it lies on"
                ) from error
        structlog.get_logger().error(
            "spool damaged",
            reason=f"the spool {self._path} was damaged ({damage}): it is now {aside}, its records were not"
            " delivered, and a new one was begun; check the disk that holds it",
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            wrong = classify_sqlite_error(error)
            if wrong is SqliteFault.BROKEN:
                raise _Damaged(str(error)) from error
            if wrong is None:
                raise
            raise SpoolDiskFull(
                f"the spool {self._path} cannot be written ({error}): make room on its disk or make it writable"
            ) from error


def _last_number(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
    return int(row[0])
