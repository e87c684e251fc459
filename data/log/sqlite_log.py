"""The event log in one SQLite file: durable, shared by threads and processes of one machine, without a server."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from predrain.data.log.log_port import Delivered, LogFull, Record, Topic
from predrain.data.refusal import Refusal
from predrain.data.sqlite_file import BUSY_SECONDS, SqliteFault, classify_sqlite_error, make_durable

FORMAT = 1
"""Version of the format, kept in the file's `user_version`; 0 is a new file."""

_VACUUM_PAGES = 4096
# With AUTOINCREMENT an offset is never given twice, even after its record was trimmed.
_TABLES = """
CREATE TABLE records (
  offset INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL);
CREATE INDEX records_by_topic ON records (topic, offset);
CREATE TABLE committed (
  topic TEXT NOT NULL, consumer TEXT NOT NULL, offset INTEGER NOT NULL,
  PRIMARY KEY (topic, consumer)) WITHOUT ROWID;
"""


class DiskFull(LogFull, Refusal):
    """The file cannot take more: the disk is full, has failed, or is mounted read-only."""


class LogBusy(LogFull, Refusal):
    """Another process has held the file for longer than an append waits."""


class LogUnreadable(Refusal):
    """The file is damaged, is no log, or was written by a newer predrain."""


class SqliteLog:
    """`data.log.log_port.Log` in the file `path`. Any number of threads and processes may append and read.

    A batch is one transaction, flushed to the disk before `append` returns (WAL, synchronous=FULL). Offsets grow over
    all topics together, so those of one topic have gaps. Raises LogUnreadable when the file cannot be used.
    """

    trims = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._known: set[tuple[Topic, str]] = set()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LogUnreadable(f"the log's folder {path.parent} cannot be made: {error.strerror}") from error
        with self._explained():
            self._connection = sqlite3.connect(
                path,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=16,
            )
        try:
            with self._explained():
                self._open()
        except BaseException:
            self._connection.close()
            raise

    def append(self, topic: Topic, records: Sequence[Record]) -> None:
        """Accept `records`, in order, all or none. Raises DiskFull or LogBusy (both LogFull)."""
        if not records:
            return
        rows = [(topic.value, record.key, record.value) for record in records]
        with self._writing() as connection:
            connection.executemany("INSERT INTO records (topic, key, value) VALUES (?, ?, ?)", rows)

    def read(self, topic: Topic, group: str, limit: int) -> tuple[Delivered, ...]:
        """Return up to `limit` records that `group` has not committed yet; empty if there are none."""
        if (topic, group) not in self._known:
            # `trim` spares a group's records from the group's first read on.
            self._advance(topic, group, 0)
        with self._lock, self._explained():
            rows = self._connection.execute(
                "SELECT offset, key, value FROM records WHERE topic = :topic AND offset >"
                " (SELECT offset FROM committed WHERE topic = :topic AND consumer = :group)"
                " ORDER BY offset LIMIT :limit",
                {"topic": topic.value, "group": group, "limit": max(limit, 0)},
            ).fetchall()
        return tuple(Delivered(offset, key, value) for offset, key, value in rows)

    def commit(self, topic: Topic, group: str, done: Sequence[Delivered]) -> None:
        """Mark all records up to and including the last of `done` as done for `group`, as far as they exist."""
        self._advance(topic, group, max((record.offset for record in done), default=0))

    def read_newest(self, topic: Topic, limit: int) -> tuple[Delivered, ...]:
        """Return the newest `limit` records, oldest first."""
        with self._lock, self._explained():
            rows = self._connection.execute(
                "SELECT offset, key, value FROM records WHERE topic = ? ORDER BY offset DESC LIMIT ?",
                (topic.value, max(limit, 0)),
            ).fetchall()
        return tuple(Delivered(offset, key, value) for offset, key, value in reversed(rows))

    def read_assignment_version(self, topic: Topic, group: str) -> int:  # noqa: ARG002
        """Return 0: each group has one process."""
        return 0

    def trim(self, topic: Topic, before_offset: int) -> int:
        """Drop records below `before_offset` that every group has committed; return how many.

        A group counts from its first `read` or `commit`. As long as there is none, nothing is dropped. Whole free
        pages are returned to the file system.
        """
        with self._writing() as connection:
            gone = connection.execute(
                "DELETE FROM records WHERE topic = :topic AND offset < :before AND offset <="
                " (SELECT coalesce(min(offset), 0) FROM committed WHERE topic = :topic)",
                {"topic": topic.value, "before": before_offset},
            ).rowcount
        with self._lock, self._explained():
            # `execute` would do one step only, which frees one page.
            self._connection.executescript(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")
        return gone

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _open(self) -> None:
        connection = self._connection
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # obeyed only while the file is new
        make_durable(connection)
        if self._version() == FORMAT:
            return
        with self._writing():
            if self._version() == 0:  # no other process has made it since
                self._create()

    def _version(self) -> int:
        version: int = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version > FORMAT:
            raise LogUnreadable(
                f"the log {self._path} has format {version} and this predrain knows {FORMAT}:"
                " update predrain, or start it with another state folder"
            )
        return version

    def _create(self) -> None:
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables:
            raise LogUnreadable(
                f"{self._path} is a database but not a log of predrain's: name another file or state folder"
            )
        for statement in _TABLES.strip().split(";\n"):
            self._connection.execute(statement)
        self._connection.execute(f"PRAGMA user_version = {FORMAT}")

    def _advance(self, topic: Topic, group: str, offset: int) -> None:
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO committed (topic, consumer, offset) VALUES (:topic, :group,"
                " min(:offset, (SELECT coalesce(max(offset), 0) FROM records WHERE topic = :topic)))"
                " ON CONFLICT DO UPDATE SET offset = max(offset, excluded.offset)",
                {"topic": topic.value, "group": group, "offset": offset},
            )
        self._known.add((topic, group))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction: durable when the block ends, undone when it raises."""
        with self._lock, self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite undoes some failures by itself
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn SQLite's errors into sentences with the cure."""
        try:
            yield
        except sqlite3.Error as error:
            wrong = classify_sqlite_error(error)
            if wrong is SqliteFault.NO_ROOM:
                raise DiskFull(
                    f"the log {self._path} cannot be written ({error}): make room on its disk or make it"
                    " writable; everything accepted before is safe, and the refused part must be sent again"
                ) from error
            if wrong is SqliteFault.HELD:
                raise LogBusy(
                    f"the log {self._path} has been held by another process for {BUSY_SECONDS:.0f} s:"
                    " see which with `fuser`, and send again"
                ) from error
            if wrong is SqliteFault.BROKEN:
                raise LogUnreadable(
                    f"the log {self._path} is damaged or no log ({error}): move it away and start again"
                    " (a new one is made), or bring it back from a backup"
                ) from error
            raise
