"""`data.log.log_port.Log` on Kafka: one producer for the process, one consumer for each group of a topic."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from predrain.data.log.kafka.broker import Broker
from predrain.data.log.kafka.dead_letter_queue import DeadLetterQueue
from predrain.data.log.kafka.kafka_reader import KafkaReader
from predrain.data.log.kafka.kafka_writer import KafkaWriter
from predrain.data.log.kafka.preflight_check import check_broker_topics
from predrain.data.log.kafka.tail_reader import read_newest_records
from predrain.data.log.log_port import Delivered, Record, Topic


class KafkaLog:
    """The log on `broker`. Connections are made when they are first needed, and made again after a failure.

    These rules hold for this log only:

    1. An `append` over several partitions that is refused may be there in part, each record whole, and is sent again
       (effects are idempotent).
    2. Order holds for each key, not over a topic of several partitions.
    3. `trim` drops nothing; the topic's retention does.
    4. The processes of a group share its partitions. A commit for partitions that another process has taken over has
       no effect.
    5. Dead letters have one reader for all groups, since committed letters are deleted.

    Every method may be called from any thread and raises BrokerAway, BrokerRefuses or TopicMissing (all LogFull)
    within about `broker.timeout_seconds`.
    """

    trims = False

    def __init__(self, broker: Broker) -> None:
        self._broker, self._writer = broker, KafkaWriter(broker)
        self._readers: dict[tuple[Topic, str], KafkaReader | DeadLetterQueue] = {}
        self._lock = Lock()

    def check_broker(self) -> None:
        """Raise BrokerAway or BrokerRefuses at once if the broker would not serve this client now."""
        check_broker_topics(self._broker)

    def append(self, topic: Topic, records: Sequence[Record]) -> None:
        """Accept `records`, in order; they are on all replicas in sync on return. Raises LogFull."""
        self._writer.append(topic, records)

    def read(self, topic: Topic, group: str, limit: int) -> tuple[Delivered, ...]:
        """Return up to `limit` records that `group` has not committed, from this process's partitions."""
        return self._reader(topic, group).read(limit)

    def commit(self, topic: Topic, group: str, done: Sequence[Delivered]) -> None:
        """Mark all records up to the last of `done` as done for `group`, in each partition that is
        still this process's.
        """
        self._reader(topic, group).commit(done)

    def read_newest(self, topic: Topic, limit: int) -> tuple[Delivered, ...]:
        """Return the newest records of all partitions, about `limit` of them, oldest first in each; groups have no
        effect.
        """
        return read_newest_records(self._broker, self._broker.broker_topic_name(topic), limit)

    def read_assignment_version(self, topic: Topic, group: str) -> int:
        """Return a number that grows whenever this process was given partitions or lost some."""
        return self._reader(topic, group).assignment_version

    def trim(self, topic: Topic, before_offset: int) -> int:  # noqa: ARG002
        """Drop nothing: the broker drops records by age."""
        return 0

    def close(self) -> None:
        """Leave all groups, and give up the records in flight."""
        with self._lock:
            readers = list(self._readers.values())
        for reader in readers:
            reader.close()
        self._writer.close()

    def _reader(self, topic: Topic, group: str) -> KafkaReader | DeadLetterQueue:
        with self._lock:
            found = self._readers.get((topic, group))
            if found is None:
                name = self._broker.broker_topic_name(topic)
                piled = topic is Topic.DEAD_LETTERS
                found = (
                    DeadLetterQueue(self._broker, name) if piled else KafkaReader(self._broker, name, group)
                )
                self._readers[topic, group] = found
            return found
