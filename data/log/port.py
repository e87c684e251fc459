"""The event-log port: where a reading is accepted. Once `append` returned, it is never lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Topic(StrEnum):
    """Streams of the house (design 3)."""

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
    """A record with its place in the topic: offsets grow within a partition, with gaps; a log without partitions has
    one, 0.
    """

    offset: int
    key: str
    value: bytes
    partition: int = 0
    damage: str = ""
    """What is wrong where the log has no whole record any more: a sentence; `value` is what is there instead."""


class LogFull(Exception):
    """The log cannot take more (disk full or read-only); what was accepted before is safe."""


class Log(Protocol):
    """Append-only topics with consumer groups. Delivery is at least once, and in order for each key.

    Contract, held by one test suite over all adapters:
    - `append` is durable when it returns and raises `LogFull` otherwise: then nothing was accepted, or, in a log whose
      topics have partitions, perhaps a part, each record whole.
    - `read` gives records after the group's committed offset, oldest first, the same ones until `commit`.
    - `commit` moves the group forward and never back; groups do not see each other's offsets.
    - where a topic has partitions, the processes of a group share them: each partition is one process's at a time,
      all records of a key are in one partition, and `share` changes whenever what is this process's has changed.
    - `trim` drops nothing that a group which ever read or committed has not committed.
    - a process killed between `read` and `commit` is given the same records again.
    """

    trims: bool
    """Whether `trim` drops what is asked; else the log drops records by its own retention."""

    def append(self, topic: Topic, records: Sequence[Record]) -> None:
        """Accept `records`, in order. Raises LogFull."""
        ...

    def read(self, topic: Topic, group: str, limit: int) -> tuple[Delivered, ...]:
        """Up to `limit` records that `group` has not committed yet; empty when there are none."""
        ...

    def commit(self, topic: Topic, group: str, done: Sequence[Delivered]) -> None:
        """For `group` everything is done up to and including the last of `done`, in each of their partitions."""
        ...

    def recent(self, topic: Topic, limit: int) -> tuple[Delivered, ...]:
        """The newest records of all partitions, about `limit` of them, oldest first in each; no group is asked."""
        ...

    def share(self, topic: Topic, group: str) -> int:
        """A number that changes when this process was given or lost partitions of `topic`: what it remembers of their
        keys may be out of date. Always the same where nobody shares.
        """
        ...

    def trim(self, topic: Topic, before_offset: int) -> int:
        """Drop records below `before_offset` that every group has committed; returns how many went.

        A group counts from its first `read` or `commit`; as long as there is none, nothing goes. A log that drops
        records by its own retention drops none here.
        """
        ...

    def close(self) -> None:
        """Let go of files and sockets."""
        ...
