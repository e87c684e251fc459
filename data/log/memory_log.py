"""The event log in this process's memory: for a demo and for simulations, lost when the process ends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from threading import Lock

from predrain.data.log.log_port import Delivered, LogFull, Record, Topic
from predrain.data.refusal import Refusal

DEFAULT_MAX_BYTES = 512 * 1024 * 1024


class MemoryFull(LogFull, Refusal):
    """The log has reached its memory limit."""


class MemoryLog:
    """`data.log.log_port.Log` without durability: a record lives until it is trimmed or the process ends.

    Safe for several threads. Holds at most `max_bytes` of keys and values over all topics.
    """

    trims = True

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._lock = Lock()
        self._max_bytes = max_bytes
        self._bytes = 0  # Invariant: the sum of _count_record_bytes over all records; never above max_bytes
        self._records: dict[Topic, list[Delivered]] = {topic: [] for topic in Topic}
        self._last: dict[Topic, int] = dict.fromkeys(Topic, 0)
        self._committed: dict[Topic, dict[str, int]] = {topic: {} for topic in Topic}

    def append(self, topic: Topic, records: Sequence[Record]) -> None:
        """Accept `records`, in order. Raises MemoryFull."""
        size = sum(_count_record_bytes(record) for record in records)
        with self._lock:
            if self._bytes + size > self._max_bytes:
                raise MemoryFull(
                    f"the in-memory log holds {self._bytes:,} of at most {self._max_bytes:,} bytes and cannot"
                    f" take {size:,} more; let its readers catch up, or keep the log on disk (--state DIR)"
                )
            first = self._last[topic] + 1
            self._records[topic].extend(
                Delivered(offset, record.key, record.value) for offset, record in enumerate(records, first)
            )
            self._last[topic] += len(records)
            self._bytes += size

    def read(self, topic: Topic, group: str, limit: int) -> tuple[Delivered, ...]:
        """Return up to `limit` records that `group` has not committed yet; empty if there are none."""
        with self._lock:
            after = self._committed[topic].setdefault(group, 0)
            records = self._records[topic]
            begin = _count_through(records, after)
            return tuple(islice(records, begin, begin + max(limit, 0)))

    def commit(self, topic: Topic, group: str, done: Sequence[Delivered]) -> None:
        """Mark all records up to and including the last of `done` as done for `group`, as far as they exist."""
        through = max((record.offset for record in done), default=0)
        with self._lock:
            before = self._committed[topic].get(group, 0)
            self._committed[topic][group] = max(before, min(through, self._last[topic]))

    def read_newest(self, topic: Topic, limit: int) -> tuple[Delivered, ...]:
        """Return the newest `limit` records, oldest first."""
        with self._lock:
            return tuple(self._records[topic][-limit:] if limit > 0 else ())

    def read_assignment_version(self, topic: Topic, group: str) -> int:  # noqa: ARG002
        """Return 0: no process shares partitions."""
        return 0

    def trim(self, topic: Topic, before_offset: int) -> int:
        """Drop records below `before_offset` that every group has committed; return how many.

        A group counts from its first `read` or `commit`. As long as there is none, nothing is dropped.
        """
        with self._lock:
            done = min(self._committed[topic].values(), default=0)
            records = self._records[topic]
            count = _count_through(records, min(before_offset - 1, done))
            self._bytes -= sum(_count_record_bytes(record) for record in records[:count])
            del records[:count]
            return count

    def close(self) -> None:
        """Do nothing: nothing is held open."""


def _count_record_bytes(record: Record | Delivered) -> int:
    return len(record.key) + len(record.value)


def _count_through(records: list[Delivered], offset: int) -> int:
    """Count the records with an offset up to `offset`. The offsets have no gaps."""
    return min(max(offset - records[0].offset + 1, 0), len(records)) if records else 0
