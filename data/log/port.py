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
    """A record with its place in the topic. Offsets grow; gaps are allowed."""

    offset: int
    key: str
    value: bytes


class LogFull(Exception):
    """The log cannot take more (disk full or read-only); what was accepted before is safe."""


class Log(Protocol):
    """Append-only topics with consumer groups. Delivery is at least once and in order.

    Contract, held by one test suite over all adapters:
    - `append` is all or nothing and durable when it returns; it raises `LogFull` otherwise.
    - `read` gives records after the group's committed offset, oldest first, the same ones until `commit`.
    - `commit` moves the group forward and never back; groups do not see each other's offsets.
    - `trim` drops nothing that a group which ever read or committed has not committed.
    - a process killed between `read` and `commit` is given the same records again.
    """

    def append(self, topic: Topic, records: Sequence[Record]) -> None:
        """Accept `records`, in order. Raises LogFull."""
        ...

    def read(self, topic: Topic, group: str, limit: int) -> tuple[Delivered, ...]:
        """Up to `limit` records that `group` has not committed yet; empty when there are none."""
        ...

    def commit(self, topic: Topic, group: str, offset: int) -> None:
        """Everything up to and including `offset` is done for `group`."""
        ...

    def trim(self, topic: Topic, before_offset: int) -> int:
        """Drop records below `before_offset` that every group has committed; returns how many went.

        A group counts from its first `read` or `commit`; as long as there is none, nothing goes.
        """
        ...

    def close(self) -> None:
        """Let go of files and sockets."""
        ...
