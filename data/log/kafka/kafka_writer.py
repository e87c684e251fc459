"""Writes records to topics: acknowledged by all replicas in sync, or refused within the broker's time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from threading import Condition, Lock
from typing import Any

from kafka import KafkaProducer, errors
from kafka.partitioner.default import murmur2

from predrain.data.log.kafka.broker import (
    LONGEST_BATCH,
    LONGEST_RECORD,
    Broker,
    BrokerAway,
    BrokerRefuses,
    RecordTooLong,
    TopicMissing,
    describe_kafka_error,
    making_none,
)
from predrain.data.log.kafka.preflight_check import check_broker_topics
from predrain.data.log.log_port import Record, Topic

ROOM = 32 << 20
"""Most bytes in flight at once, over all threads; kafka-python itself would take any number."""
PIECE = 1 << 20
"""Bytes after which an append releases capacity that was acknowledged."""
BATCH = 128 << 10
LINGER_MS = 5
CLOSING_SECONDS = 2.0
_murmur = lru_cache(maxsize=1 << 18)(murmur2)  # in pure Python; a drive's key comes every hour


class KafkaWriter:
    """One producer for all topics and threads. It is made when it is first needed, and again after a failure."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._room = broker, _Room(ROOM)
        self._making, self._turn = Lock(), Lock()
        self._producer: Any = None
        self._known = set[Topic]()

    def append(self, topic: Topic, records: Sequence[Record]) -> None:
        """Send the records and return once all are acknowledged.

        Raises LogFull with the reason; then some records may be there, each of them whole.
        """
        rows = [(record.key.encode("utf-8", "surrogatepass"), record.value) for record in records]
        for key, value in rows:
            if len(key) + len(value) > LONGEST_RECORD:
                raise RecordTooLong(
                    f"a record of {len(key) + len(value):,} bytes is more than the log takes ({LONGEST_RECORD:,});"
                    " send it in parts, or less of it"
                )
        if not rows:
            return
        producer = self._ready(topic)
        sent = _Sent(self._room, self._broker.timeout_seconds)
        name = self._broker.broker_topic_name(topic)
        try:
            partitions = len(producer.partitions_for(name))  # some may have been added
            with self._turn:  # the records of one append are adjacent in their partitions
                for key, value in rows:
                    sent.make_room(len(key) + len(value))
                    partition = (_murmur(key) & 0x7FFFFFFF) % partitions
                    sent.add_future(producer.send(name, value, key, partition=partition))
            sent.wait_for_all()
        except (errors.KafkaError, ValueError) as error:
            self._drop(producer)
            if name not in check_broker_topics(self._broker, name):
                raise TopicMissing(name) from error
            if isinstance(error, errors.MessageSizeTooLargeError):
                raise BrokerRefuses(
                    f"the topic {name} takes less at once than a record of ours may be: set its max.message.bytes to"
                    f" {LONGEST_BATCH:,}, as `predrain topics create` does; the refused records are sent again"
                ) from error
            raise BrokerAway(
                f"the broker did not acknowledge within {self._broker.timeout_seconds:.0f} s "
                f"({describe_kafka_error(error)}): see that"
                " enough of its replicas are in sync; some of what was refused may be there, send all of it again"
            ) from error
        finally:
            sent.give_back()

    def close(self) -> None:
        """Give up the records in flight, for which no caller waits any more."""
        self._drop(self._producer)

    def _ready(self, topic: Topic) -> Any:
        """Return the producer, with `topic` known to exist. Raises LogFull with the reason at once if it cannot."""
        if not self._making.acquire(timeout=self._broker.timeout_seconds):
            raise BrokerAway(
                "the broker keeps others of us waiting already: see that it runs, and send again"
            )
        try:
            if self._producer is None:
                check_broker_topics(self._broker)
                self._producer = self._made()
                self._known.clear()
            if topic not in self._known:
                name = self._broker.broker_topic_name(topic)
                if name not in check_broker_topics(self._broker, name):
                    raise TopicMissing(name)
                self._known.add(topic)
            return self._producer
        finally:
            self._making.release()

    def _made(self) -> Any:
        try:
            producer: Any = KafkaProducer(
                **self._broker.build_client_options(),
                acks="all",
                enable_idempotence=True,
                compression_type="zstd",
                linger_ms=LINGER_MS,
                batch_size=BATCH,
                max_request_size=LONGEST_BATCH,
                delivery_timeout_ms=self._broker.timeout_milliseconds,
                request_timeout_ms=self._broker.timeout_milliseconds - LINGER_MS,
                max_block_ms=self._broker.timeout_milliseconds,
                metrics_enabled=False,
            )
            making_none(producer._metadata)
            return producer
        except errors.KafkaError as error:
            raise BrokerAway.from_unanswered(error) from error

    def _drop(self, producer: Any) -> None:
        with self._making:
            if producer is not None and self._producer is producer:
                self._producer = None
                # `close` alone waits for the records in flight, and leaves its thread running when that takes
                # too long.
                producer._sender.force_close()
                with suppress(errors.KafkaError):
                    producer.close(timeout=CLOSING_SECONDS)


class _Room:
    """Bytes in flight, counted over all threads."""

    def __init__(self, most: int) -> None:
        self._most, self._taken, self._changed = most, 0, Condition()

    def acquire_bytes(self, count: int, seconds: float) -> bool:
        """Wait until there is capacity, or nothing else in flight; return False if that takes longer than `seconds`."""
        with self._changed:
            if not self._changed.wait_for(
                lambda: not self._taken or self._taken + count <= self._most, seconds
            ):
                return False
            self._taken += count
            return True

    def release_bytes(self, count: int) -> None:
        with self._changed:
            self._taken -= count
            self._changed.notify_all()


class _Sent:
    """The records of one append in flight, in pieces: (bytes, futures)."""

    def __init__(self, room: _Room, seconds: float) -> None:
        self._room, self._seconds = room, seconds
        self._pieces: deque[tuple[int, list[Any]]] = deque()
        self._left = 0

    def make_room(self, count: int) -> None:
        """Get capacity for `count` bytes more. Raises KafkaError if a piece failed, or there is no capacity in time."""
        self._left -= count
        if self._left >= 0:
            return
        size = max(PIECE, count)
        while len(self._pieces) * PIECE >= ROOM // 2:
            self._await_first()
        if not self._room.acquire_bytes(size, self._seconds):
            raise errors.KafkaTimeoutError("too much is on its way already")
        self._pieces.append((size, []))
        self._left = size - count

    def add_future(self, future: Any) -> None:
        self._pieces[-1][1].append(future)

    def wait_for_all(self) -> None:
        """Wait for all records. Raises KafkaError if one failed."""
        while self._pieces:
            self._await_first()

    def give_back(self) -> None:
        """Release the capacity of the pieces for which no caller waits any more."""
        while self._pieces:
            self._room.release_bytes(self._pieces.popleft()[0])

    def _await_first(self) -> None:
        size, futures = self._pieces[0]
        for future in futures:
            future.get(self._seconds + 1)
        self._pieces.popleft()
        self._room.release_bytes(size)
