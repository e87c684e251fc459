"""A log whose topics have partitions that come and go between processes, for tests of who takes over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from zlib import crc32

from predrain.data.log.log_port import Delivered, Record, Topic
from predrain.data.log.memory_log import MemoryLog


@dataclass
class Partitions:
    """The log itself: one memory log a partition, and who reads which."""

    count: int
    logs: list[MemoryLog] = field(default_factory=list)
    owners: dict[int, int] = field(default_factory=dict)
    moves: int = 0

    def __post_init__(self) -> None:
        self.logs = [MemoryLog() for _ in range(self.count)]

    def give(self, owners: dict[int, int]) -> None:
        """A rebalance: partition -> member."""
        self.owners, self.moves = owners, self.moves + 1


@dataclass
class Member:
    """`data.log.log_port.Log` as one process of the group sees it."""

    partitions: Partitions
    me: int
    trims: bool = False

    def append(self, topic: Topic, records: Sequence[Record]) -> None:
        for record in records:
            self.partitions.logs[crc32(record.key.encode()) % self.partitions.count].append(topic, [record])

    def read(self, topic: Topic, group: str, limit: int) -> tuple[Delivered, ...]:
        found: list[Delivered] = []
        for number in self._mine():
            left = limit - len(found)
            found += [
                replace(one, partition=number)
                for one in self.partitions.logs[number].read(topic, group, left)
            ]
        return tuple(found)

    def commit(self, topic: Topic, group: str, done: Sequence[Delivered]) -> None:
        for number in self._mine():
            own = [one for one in done if one.partition == number]
            if own:
                self.partitions.logs[number].commit(topic, group, own)

    def read_newest(self, topic: Topic, limit: int) -> tuple[Delivered, ...]:
        return tuple(one for log in self.partitions.logs for one in log.read_newest(topic, limit))

    def read_assignment_version(self, topic: Topic, group: str) -> int:  # noqa: ARG002
        return self.partitions.moves

    def trim(self, topic: Topic, before_offset: int) -> int:  # noqa: ARG002
        return 0

    def close(self) -> None:
        """Nothing to let go of."""

    def _mine(self) -> list[int]:
        return [number for number, owner in sorted(self.partitions.owners.items()) if owner == self.me]
