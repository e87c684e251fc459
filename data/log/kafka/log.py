"""`data.log.port.Log` over Kafka: one producer for the process, one consumer for each group of a topic."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from predrain.data.log.kafka.broker import Broker
from predrain.data.log.kafka.dead_letter_queue import Pile
from predrain.data.log.kafka.preflight_check import greet
from predrain.data.log.kafka.reader import KafkaReader
from predrain.data.log.kafka.tail_reader import newest
from predrain.data.log.kafka.writer import Writer
from predrain.data.log.port import Delivered, Record, Topic


class KafkaLog:
    """The log on `broker`; nothing is connected before it is needed, and what broke is connected anew.

    What holds here and not elsewhere: an `append` over several partitions that is refused may be there in part, each
    record whole, and is sent again (effects are idempotent); order holds for each key, not over a topic of several
    partitions; `trim` drops nothing, the topic's retention does; the processes of a group share its partitions, and a
    commit of what another process has taken over meanwhile does nothing; dead letters have one reader's place for all
    groups, since what is committed of them is deleted. Every method may be called from any thread
    and raises BrokerAway, BrokerRefuses or TopicMissing (all LogFull) within about `broker.timeout_seconds`.
    """

    trims = False

    def __init__(self, broker: Broker) -> None:
        self._broker, self._writer = broker, Writer(broker)
        self._readers: dict[tuple[Topic, str], KafkaReader | Pile] = {}
        self._lock = Lock()

    def check(self) -> None:
        """Raises BrokerAway or BrokerRefuses at once when the broker would not serve us now."""
        greet(self._broker)

    def append(self, topic: Topic, records: Sequence[Record]) -> None:
        """Accept `records`, in order; they are on all replicas in sync when it returns. Raises LogFull."""
        self._writer.append(topic, records)

    def read(self, topic: Topic, group: str, limit: int) -> tuple[Delivered, ...]:
        """Up to `limit` records that `group` has not committed, of the partitions that are this process's."""
        return self._reader(topic, group).read(limit)

    def commit(self, topic: Topic, group: str, done: Sequence[Delivered]) -> None:
        """For `group` all is done up to the last of `done` in each of their partitions that is still this process's."""
        self._reader(topic, group).commit(done)

    def recent(self, topic: Topic, limit: int) -> tuple[Delivered, ...]:
        """The newest records of all partitions, about `limit` of them, oldest first in each; no group is asked."""
        return newest(self._broker, self._broker.topic(topic), limit)

    def share(self, topic: Topic, group: str) -> int:
        """A number that grows whenever this process was given partitions or lost some."""
        return self._reader(topic, group).share

    def trim(self, topic: Topic, before_offset: int) -> int:  # noqa: ARG002
        """The broker drops by age."""
        return 0

    def close(self) -> None:
        """Leave all groups, and give up what is on its way."""
        with self._lock:
            readers = list(self._readers.values())
        for reader in readers:
            reader.close()
        self._writer.close()

    def _reader(self, topic: Topic, group: str) -> KafkaReader | Pile:
        with self._lock:
            found = self._readers.get((topic, group))
            if found is None:
                name = self._broker.topic(topic)
                piled = topic is Topic.DEAD_LETTERS
                found = Pile(self._broker, name) if piled else KafkaReader(self._broker, name, group)
                self._readers[topic, group] = found
            return found
