"""What lies in a spool's file: entries, and the numbers that outlive them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from predrain.data.log.port import Record, Topic

TOPICS: tuple[Topic, ...] = (Topic.READINGS, Topic.LATENCY)
"""In the order of their worth."""

UNSAID = "unsaid"
"""Number of lost summaries that the next batch has to tell of."""

_OVERHEAD = 256
"""Bytes that an entry takes besides its value, with its row of the index."""


@dataclass(frozen=True, slots=True)
class SpoolEntry:
    """One accepted record under its number; numbers grow in the order of acceptance."""

    number: int
    record: Record


@dataclass(frozen=True, slots=True)
class SpoolStatus:
    """How a spool stands. Counts are since its file was made."""

    readings: int
    batches: int
    bytes: int
    lost_readings: int
    lost_summaries: int
    refused: int
    delivered_at: int | None
    """Seconds since 1970 of the last acknowledged delivery."""


@dataclass(frozen=True, slots=True)
class Old:
    """An entry that may have to go."""

    number: int
    born: int
    bytes: int
    holds: int
    """What is lost with it: one reading, or so many summaries."""
    tells: int
    """Earlier losses that it was to tell of."""


class Contents:
    """The tables under one connection, within the caller's transaction. Raises sqlite3's errors."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def number(self, name: str) -> int:
        """A number by its name, 0 when it was never set."""
        row = self._connection.execute("SELECT number FROM numbers WHERE name = ?", (name,)).fetchone()
        return int(row[0]) if row else 0

    def note(self, name: str, number: int) -> None:
        """Set a number."""
        self._connection.execute("INSERT OR REPLACE INTO numbers VALUES (?, ?)", (name, number))

    def add(self, name: str, count: int) -> int:
        """Add to a number; returns what it is now."""
        number = self.number(name) + count
        self.note(name, number)
        return number

    def insert(self, topic: Topic, record: Record, holds: int, tells: int) -> None:
        """Keep a record, as old as the spool is now."""
        self._connection.execute(
            "INSERT INTO entries (topic, key, born, holds, tells, value) VALUES (?, ?, ?, ?, ?, ?)",
            (topic.value, record.key, self.number("age"), holds, tells, record.value),
        )
        self.add("bytes", size(len(record.value)))

    def delete(self, number: int) -> bool:
        """Forget an entry that was delivered; False when it had gone before."""
        row = self._connection.execute(
            "DELETE FROM entries WHERE number = ? RETURNING length(value)", (number,)
        ).fetchone()
        if row:
            self.add("bytes", -size(row[0]))
        return row is not None

    def oldest(self, topic: Topic) -> Iterator[Old]:
        """Entries of `topic`, oldest first."""
        for number, born, length, holds, tells in self._connection.execute(
            "SELECT number, born, length(value), holds, tells FROM entries WHERE topic = ? ORDER BY number",
            (topic.value,),
        ):
            yield Old(number, born, size(length), holds, tells)

    def drop(self, topic: Topic, doomed: Iterable[Old]) -> None:
        """Give entries up, and count what is lost with them."""
        for old in tuple(doomed):
            if self.delete(old.number):
                self.lose(topic, old.holds)
                self.add(UNSAID, old.tells)

    def lose(self, topic: Topic, count: int) -> None:
        """Count what will never be delivered."""
        for name in losses(topic):
            self.add(name, count)

    def newest(self, topic: Topic, after: int, without: Collection[int], limit: int) -> Iterator[SpoolEntry]:
        """Of each key the newest entry, where that is later than number `after`."""
        return self._entries(
            "number IN (SELECT max(number) FROM entries WHERE topic = ?1 AND number > ?2 GROUP BY key)",
            (topic.value, after, limit + len(without)),
            without,
        )

    def up_to(self, topic: Topic, last: int, without: Collection[int], limit: int) -> Iterator[SpoolEntry]:
        """Entries up to number `last`, oldest first."""
        return self._entries(
            "topic = ?1 AND number <= ?2", (topic.value, last, limit + len(without)), without
        )

    def standing(self) -> SpoolStatus:
        """How the spool stands."""
        counts = dict(self._connection.execute("SELECT topic, count(*) FROM entries GROUP BY topic"))
        return SpoolStatus(
            readings=counts.get(Topic.READINGS.value, 0),
            batches=counts.get(Topic.LATENCY.value, 0),
            bytes=self.number("bytes"),
            lost_readings=self.number("lost.readings"),
            lost_summaries=self.number("lost.summaries"),
            refused=self.number("refused"),
            delivered_at=self.number("delivered_at") or None,
        )

    def _entries(
        self, which: str, values: tuple[str, int, int], without: Collection[int]
    ) -> Iterator[SpoolEntry]:
        rows = self._connection.execute(
            f"SELECT number, key, value FROM entries WHERE {which} ORDER BY number LIMIT ?3",  # noqa: S608
            values,
        )
        for number, key, value in rows:
            if number not in without:
                yield SpoolEntry(number, Record(key, value))


def losses(topic: Topic) -> tuple[str, ...]:
    """Numbers that count what is lost of `topic`."""
    return ("lost.readings",) if topic is Topic.READINGS else ("lost.summaries", UNSAID)


def size(length: int) -> int:
    """Bytes that a value of `length` takes in the file."""
    return length + _OVERHEAD


def look(path: Path) -> SpoolStatus | None:
    """How the spool of a collector that may be running stands; None when there is none to be read."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return Contents(connection).standing()
        finally:
            connection.close()
    except sqlite3.Error:
        return None
