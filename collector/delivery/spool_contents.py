"""The contents of a spool's file: entries, and the numbers that outlive the entries."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from predrain.data.log.log_port import Record, Topic

TOPICS: tuple[Topic, ...] = (Topic.READINGS, Topic.LATENCY)
"""The topics, the most valuable first."""

UNSAID = "unsaid"
"""Name of the number of lost summaries that the next batch has to report."""

_OVERHEAD = 256
"""Bytes that an entry takes besides its value, including its row of the index."""


@dataclass(frozen=True, slots=True)
class SpoolEntry:
    """One accepted record and its number. Numbers grow in the order of acceptance."""

    number: int
    record: Record


@dataclass(frozen=True, slots=True)
class SpoolStatus:
    """The state of a spool. Counts are since its file was made."""

    readings: int
    batches: int
    bytes: int
    lost_readings: int
    lost_summaries: int
    refused: int
    delivered_at: int | None
    """Time of the last acknowledged delivery, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class DroppableEntry:
    """An entry that may have to be dropped."""

    number: int
    born: int
    bytes: int
    holds: int
    """Number of readings (one) or summaries that are lost with the entry."""
    tells: int
    """Number of earlier losses that the entry was to report."""


class SpoolTables:
    """The spool's tables on one connection, within the caller's transaction. Its methods raise sqlite3's errors."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read_number(self, name: str) -> int:
        """Return the number of this name, or 0 if it was never set."""
        row = self._connection.execute("SELECT number FROM numbers WHERE name = ?", (name,)).fetchone()
        return int(row[0]) if row else 0

    def set_number(self, name: str, number: int) -> None:
        """Set a number."""
        self._connection.execute("INSERT OR REPLACE INTO numbers VALUES (?, ?)", (name, number))

    def add_to_number(self, name: str, count: int) -> int:
        """Add to a number; return the new value."""
        number = self.read_number(name) + count
        self.set_number(name, number)
        return number

    def insert(self, topic: Topic, record: Record, holds: int, tells: int) -> None:
        """Insert a record. Its `born` is the present age of the spool."""
        self._connection.execute(
            "INSERT INTO entries (topic, key, born, holds, tells, value) VALUES (?, ?, ?, ?, ?, ?)",
            (topic.value, record.key, self.read_number("age"), holds, tells, record.value),
        )
        self.add_to_number("bytes", compute_entry_size(len(record.value)))

    def delete(self, number: int) -> bool:
        """Delete an entry; return False if it was no longer there."""
        row = self._connection.execute(
            "DELETE FROM entries WHERE number = ? RETURNING length(value)", (number,)
        ).fetchone()
        if row:
            self.add_to_number("bytes", -compute_entry_size(row[0]))
        return row is not None

    def list_oldest(self, topic: Topic) -> Iterator[DroppableEntry]:
        """Yield the entries of `topic`, oldest first."""
        for number, born, length, holds, tells in self._connection.execute(
            "SELECT number, born, length(value), holds, tells FROM entries WHERE topic = ? ORDER BY number",
            (topic.value,),
        ):
            yield DroppableEntry(number, born, compute_entry_size(length), holds, tells)

    def drop(self, topic: Topic, to_drop: Iterable[DroppableEntry]) -> None:
        """Drop entries, and count the records that are lost with them."""
        for old in tuple(to_drop):
            if self.delete(old.number):
                self.count_loss(topic, old.holds)
                self.add_to_number(UNSAID, old.tells)

    def count_loss(self, topic: Topic, count: int) -> None:
        """Count `count` records of `topic` as lost."""
        for name in list_loss_counters(topic):
            self.add_to_number(name, count)

    def list_newest(
        self, topic: Topic, after: int, without: Collection[int], limit: int
    ) -> Iterator[SpoolEntry]:
        """Yield the newest entry of each key, if its number is greater than `after`."""
        return self._entries(
            "number IN (SELECT max(number) FROM entries WHERE topic = :topic AND number > :bound GROUP BY key)",
            {"topic": topic.value, "bound": after, "limit": limit + len(without)},
            without,
        )

    def up_to(self, topic: Topic, last: int, without: Collection[int], limit: int) -> Iterator[SpoolEntry]:
        """Yield the entries up to number `last`, oldest first."""
        return self._entries(
            "topic = :topic AND number <= :bound",
            {"topic": topic.value, "bound": last, "limit": limit + len(without)},
            without,
        )

    def read_status(self) -> SpoolStatus:
        """Return the state of the spool."""
        counts = dict(self._connection.execute("SELECT topic, count(*) FROM entries GROUP BY topic"))
        return SpoolStatus(
            readings=counts.get(Topic.READINGS.value, 0),
            batches=counts.get(Topic.LATENCY.value, 0),
            bytes=self.read_number("bytes"),
            lost_readings=self.read_number("lost.readings"),
            lost_summaries=self.read_number("lost.summaries"),
            refused=self.read_number("refused"),
            delivered_at=self.read_number("delivered_at") or None,
        )

    def _entries(
        self, which: str, values: dict[str, str | int], without: Collection[int]
    ) -> Iterator[SpoolEntry]:
        rows = self._connection.execute(
            f"SELECT number, key, value FROM entries WHERE {which} ORDER BY number LIMIT :limit",  # noqa: S608
            values,
        )
        for number, key, value in rows:
            if number not in without:
                yield SpoolEntry(number, Record(key, value))


def list_loss_counters(topic: Topic) -> tuple[str, ...]:
    """Return the names of the numbers that count the losses of `topic`."""
    return ("lost.readings",) if topic is Topic.READINGS else ("lost.summaries", UNSAID)


def compute_entry_size(length: int) -> int:
    """Return the bytes that a value of `length` bytes takes in the file."""
    return length + _OVERHEAD


def read_spool_status(path: Path) -> SpoolStatus | None:
    """Read the state of a spool whose collector may be running; return None if the file cannot be read."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return SpoolTables(connection).read_status()
        finally:
            connection.close()
    except sqlite3.Error:
        return None
