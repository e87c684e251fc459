"""The newest records of a topic, for who only looks back: as no group, so that nobody's place is moved."""

from __future__ import annotations

import time
from typing import Any

from kafka import KafkaConsumer, errors
from kafka.structs import TopicPartition

from data.log.kafka.batches import bounded
from data.log.kafka.broker import LONGEST_BATCH, Broker, BrokerAway, TopicMissing, making_none
from data.log.kafka.greeting import greet
from data.log.port import Delivered

WAIT_MS = 100


def newest(broker: Broker, name: str, limit: int) -> tuple[Delivered, ...]:
    """The last `limit` records of the topic `name`, shared out evenly over its partitions, oldest first in each.

    Raises BrokerAway, BrokerRefuses and TopicMissing.
    """
    if name not in greet(broker, name):
        raise TopicMissing(name)
    try:
        consumer = bounded(
            KafkaConsumer(
                **broker.options(),
                enable_auto_commit=False,
                max_partition_fetch_bytes=LONGEST_BATCH,
                metrics_enabled=False,
            )
        )
        making_none(consumer._cluster)
        try:
            return tuple(_read(broker, consumer, name, limit))
        finally:
            consumer.close(autocommit=False, timeout_ms=broker.milliseconds)
    except errors.KafkaError as error:
        raise BrokerAway.silent(error) from error


def _read(broker: Broker, consumer: Any, name: str, limit: int) -> list[Delivered]:
    places = [
        TopicPartition(name, partition) for partition in sorted(consumer.partitions_for_topic(name) or ())
    ]
    consumer.assign(places)
    first = consumer.beginning_offsets(places, timeout_ms=broker.milliseconds)
    ends = consumer.end_offsets(places, timeout_ms=broker.milliseconds)
    each = -(-max(limit, 0) // max(len(places), 1))
    for place in places:
        consumer.seek(place, max(first[place], ends[place] - each))
    found: list[Delivered] = []
    end = time.monotonic() + broker.timeout_seconds
    while any(consumer.position(place, timeout_ms=broker.milliseconds) < ends[place] for place in places):
        for place, records in consumer.poll(WAIT_MS).items():
            found += [one for one in records if one.offset < ends[place]]
            end = time.monotonic() + broker.timeout_seconds
        if time.monotonic() >= end:
            raise errors.KafkaTimeoutError("it has not given all of the records that it has")
    return found
