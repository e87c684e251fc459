"""Dead letters, which people look at and take off: not as a group, whose place brokers forget after a week without a
member, and whose members share what each of them wants to see. What is done is deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka import errors
from kafka.structs import TopicPartition

from predrain.data.log.kafka.broker import Broker, BrokerRefuses
from predrain.data.log.kafka.tail_reader import oldest
from predrain.data.log.kafka.topics import Administration
from predrain.data.log.port import Delivered


class Pile:
    """The topic `name`, the same for every group. Any thread may use it."""

    share = 0
    """Nobody shares."""

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker, self._name = broker, name

    def read(self, limit: int) -> tuple[Delivered, ...]:
        """The oldest that are there, about `limit` of them."""
        return oldest(self._broker, self._name, limit) if limit > 0 else ()

    def commit(self, done: Sequence[Delivered]) -> None:
        """Delete `done` and what is older in their partitions; of nothing, ask whether we may.

        Raises BrokerRefuses where we may not.
        """
        with Administration(self._broker) as admin:
            (described,) = admin.describe_topics([self._name])
            before = {one["partition_index"]: 0 for one in described["partitions"]}
            for one in done:
                before[one.partition] = max(before.get(one.partition, 0), one.offset + 1)
            self._delete(admin, {TopicPartition(self._name, place): to for place, to in before.items()})

    def close(self) -> None:
        """Nothing is held."""

    def _delete(self, admin: Any, before: dict[Any, int]) -> None:
        for place, offset in before.items():  # one by one: of several that fail the client tells no reason
            try:
                admin.delete_records({place: offset}, timeout_ms=self._broker.milliseconds)
            except errors.TopicAuthorizationFailedError as error:
                raise BrokerRefuses(
                    f"our user may not delete records of the topic {self._name}, so that what is sent again would stand"
                    " there as before: allow it the operation Delete on that topic"
                ) from error
            except errors.OffsetOutOfRangeError:
                continue  # the topic was made anew, and ends before: what was done is not there
