"""The log of a machine whose service shares its store: only the active service takes readings from it.

Without Kafka each service has a log of its own, so that two services cannot divide the disks between them. A service
remembers the state of each disk; if two scored one disk in turn, neither would know the readings of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from predrain.data.log.log_port import Delivered, Log, Record, Topic
from predrain.service.forecasting import worker
from predrain.service.runtime.service_lease import ServiceLease


@dataclass(slots=True)
class ActiveServiceLog:
    """`data.log.log_port.Log` of one machine. Readings that wait in it stay there while the service is the standby."""

    log: Log
    lease: ServiceLease
    trims: bool = field(init=False)

    def __post_init__(self) -> None:
        self.trims = self.log.trims

    def append(self, topic: Topic, records: Sequence[Record]) -> None:
        """Accept `records`, in order. Raises LogFull, and NotActive for readings."""
        if topic is Topic.READINGS:
            self.lease.require_active()
        self.log.append(topic, records)

    def read(self, topic: Topic, group: str, limit: int) -> tuple[Delivered, ...]:
        """Return up to `limit` records that `group` has not committed yet; none to the worker of a standby."""
        if topic is Topic.READINGS and group == worker.GROUP and not self.lease.is_active():
            limit = 0
        return self.log.read(topic, group, limit)

    def commit(self, topic: Topic, group: str, done: Sequence[Delivered]) -> None:
        """Mark all records up to and including the last of `done` as done for `group`."""
        self.log.commit(topic, group, done)

    def read_newest(self, topic: Topic, limit: int) -> tuple[Delivered, ...]:
        """Return the newest records, about `limit` of them, oldest first."""
        return self.log.read_newest(topic, limit)

    def read_assignment_version(self, topic: Topic, group: str) -> int:  # noqa: ARG002
        """Return the term in which this service was the active one last: what it knows of the disks is of that term."""
        return self.lease.own_term

    def trim(self, topic: Topic, before_offset: int) -> int:
        """Drop records below `before_offset` that every group has committed; return how many."""
        return self.log.trim(topic, before_offset)

    def close(self) -> None:
        """Close files and sockets."""
        self.log.close()
