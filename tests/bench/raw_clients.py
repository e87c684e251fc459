"""The baselines' clients of Kafka and PostgreSQL: both libraries of Kafka behind one call, and COPY in binary form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Protocol

import psycopg
from confluent_kafka import Consumer, KafkaException
from kafka import KafkaConsumer

GROUP = "raw"
FETCH_WAIT_MS = 50
TIMEOUT_SECONDS = 0.1


class RawConsumer(Protocol):
    """A consumer of one topic, from its oldest record, that commits only in `commit`."""

    def poll_records(self, limit: int) -> list[tuple[bytes, bytes]]:
        """Return key and value of up to `limit` records; an empty list after TIMEOUT_SECONDS."""

    def commit(self) -> None:
        """Commit what was polled, and wait for the broker's answer."""

    def close(self) -> None:
        """Leave the group."""


class ConfluentConsumer:
    """confluent-kafka: librdkafka, in C."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": FETCH_WAIT_MS,
            }
        )
        self._consumer.subscribe([topic])

    def poll_records(self, limit: int) -> list[tuple[bytes, bytes]]:
        messages = self._consumer.consume(limit, TIMEOUT_SECONDS)
        for message in messages:
            if error := message.error():
                raise KafkaException(error)
        return [(one.key(), one.value()) for one in messages]

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


class PythonConsumer:
    """kafka-python, the library that predrain uses."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=[bootstrap],
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )

    def poll_records(self, limit: int) -> list[tuple[bytes, bytes]]:
        found = self._consumer.poll(TIMEOUT_SECONDS * 1_000, max_records=limit)
        return [(one.key, one.value) for some in found.values() for one in some]

    def commit(self) -> None:
        self._consumer.commit()

    def close(self) -> None:
        self._consumer.close()


@contextmanager
def open_raw_consumer(
    bootstrap: str, topic: str, client: type[ConfluentConsumer | PythonConsumer] = ConfluentConsumer
) -> Iterator[RawConsumer]:
    """Yield a consumer that has not joined its group yet."""
    with closing(client(bootstrap, topic)) as consumer:
        yield consumer


def copy_rows(
    connection: psycopg.Connection[Any], statement: str, types: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Run a COPY in PostgreSQL's binary format; the caller commits."""
    with connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)
