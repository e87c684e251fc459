"""The event-log port, where a reading is accepted. Once `append` has returned, the reading is never lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

LONGEST = 1 << 20
"""Bytes of the longest value; a dead letter may have twice that, since it holds another value in base 64."""


class Topic(StrEnum):
    """The event streams of predrain (design 3)."""

    READINGS = "readings"
    LATENCY = "latency"
    OUTLOOKS = "outlooks"
    ACTIONS = "actions"
    DEAD_LETTERS = "deadletters"


@dataclass(frozen=True, slots=True)
class Record:
    """A key (device id or host) and an encoded envelope (data.wire)."""

    key: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Delivered:
    """A record with its place in the topic.

    Offsets grow within a partition, with gaps. A log without partitions has one, 0.
    """

    offset: int
    key: str
    value: bytes
    partition: int = 0
    damage: str = ""
    """A sentence about the damage if the log no longer has the whole record; `value` then holds the remaining bytes."""


class LogFull(Exception):
    """The log cannot take more (disk full or read-only); what was accepted before is safe."""


class Log(Protocol):
    """Append-only topics with consumer groups. Delivery is at least once, and in order for each key.

    Contract, checked by one test suite for all adapters:

    1. `append` is durable when it returns and raises `LogFull` otherwise: then nothing was accepted, or, in a log
       whose topics have partitions, perhaps a part, each record whole.
    2. `read` gives records after the group's committed offset, oldest first, the same ones until `commit`.
    3. `commit` moves the group forward and never back; groups do not see each other's offsets.
    4. If a topic has partitions, the processes of a group share them. Each partition belongs to one process at a
       time, and all records of a key are in one partition. `read_assignment_version` changes whenever the process's
       partitions have changed.
    5. `trim` drops nothing that a group which ever read or committed has not committed.
    6. A process killed between `read` and `commit` is given the same records again.
    """

    trims: bool
    """True if `trim` drops records; else the log drops them by its own retention."""

    def append(self, topic: Topic, records: Sequence[Record]) -> None:
        """Accept `records`, in order. Raises LogFull."""
        ...

    def read(self, topic: Topic, group: str, limit: int) -> tuple[Delivered, ...]:
        """Return up to `limit` records that `group` has not committed yet; empty if there are none."""
        ...

    def commit(self, topic: Topic, group: str, done: Sequence[Delivered]) -> None:
        """Mark all records up to and including the last of `done` as done for `group`, in each of their partitions."""
        ...

    def read_newest(self, topic: Topic, limit: int) -> tuple[Delivered, ...]:
        """Return the newest records of all partitions, about `limit` of them, oldest first in each; groups have no
        effect.
        """
        ...

    def read_assignment_version(self, topic: Topic, group: str) -> int:
        """Return a number that changes when this process was given or lost partitions of `topic`.

        State that the process remembers for their keys may then be out of date. The number is constant if partitions
        are not shared.
        """
        ...

    def trim(self, topic: Topic, before_offset: int) -> int:
        """Drop records below `before_offset` that every group has committed; return how many.

        A group counts from its first `read` or `commit`. As long as there is none, nothing is dropped. A log that
        drops records by its own retention drops none here.
        """
        ...

    def close(self) -> None:
        """Close files and sockets."""
        ...
