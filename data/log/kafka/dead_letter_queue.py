"""Dead letters, which people read and delete.

There is no consumer group: brokers forget the offsets of a group after a week without a member, and the members of a
group would share records that each of them wants to see. Letters that are done are deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka import errors
from kafka.structs import TopicPartition

from predrain.data.log.kafka.broker import Broker, BrokerRefuses
from predrain.data.log.kafka.kafka_topics import TopicAdministration
from predrain.data.log.kafka.tail_reader import read_oldest_records
from predrain.data.log.log_port import Delivered


class DeadLetterQueue:
    """The dead letters in the topic `name`, the same for every group. Any thread may use it."""

    assignment_version = 0
    """Constant, since no process shares partitions."""

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker, self._name = broker, name

    def read(self, limit: int) -> tuple[Delivered, ...]:
        """Return the oldest letters, about `limit` of them."""
        return read_oldest_records(self._broker, self._name, limit) if limit > 0 else ()

    def commit(self, done: Sequence[Delivered]) -> None:
        """Delete `done` and older records in their partitions. With an empty `done`, check the right to delete.

        Raises BrokerRefuses if this client may not delete.
        """
        with TopicAdministration(self._broker) as admin:
            (described,) = admin.describe_topics([self._name])
            before = {one["partition_index"]: 0 for one in described["partitions"]}
            for one in done:
                before[one.partition] = max(before.get(one.partition, 0), one.offset + 1)
            self._delete(admin, {TopicPartition(self._name, place): to for place, to in before.items()})

    def close(self) -> None:
        """Do nothing: nothing is held open."""

    def _delete(self, admin: Any, before: dict[Any, int]) -> None:
        for place, offset in before.items():  # one by one: if several fail, the client gives no reason
            try:
                admin.delete_records({place: offset}, timeout_ms=self._broker.timeout_milliseconds)
            except errors.TopicAuthorizationFailedError as error:
                raise BrokerRefuses(
                    f"our user may not delete records of the topic {self._name}, so that what is sent again would stand"
                    " there as before: allow it the operation Delete on that topic"
                ) from error
            except errors.OffsetOutOfRangeError:
                continue  # the topic was created again and ends before: the done records are gone
