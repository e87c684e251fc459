"""Records of a topic for who looks by himself: as no group, so that nobody's place is moved and nobody shares."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kafka import KafkaConsumer, errors
from kafka.structs import TopicPartition

from predrain.data.log.kafka.batches import AT_ONCE, bounded
from predrain.data.log.kafka.broker import LONGEST_BATCH, Broker, BrokerAway, TopicMissing, making_none
from predrain.data.log.kafka.preflight_check import greet
from predrain.data.log.port import Delivered

WAIT_MS = 100

_Span = Callable[[int, int, int], tuple[int, int]]
"""From how many records of each partition, its first offset and its end: where to begin and where to end."""


def newest(broker: Broker, name: str, limit: int) -> tuple[Delivered, ...]:
    """The last `limit` records of the topic `name`, shared out evenly over its partitions, oldest first in each.

    Raises BrokerAway, BrokerRefuses and TopicMissing.
    """
    return _looked(broker, name, limit, lambda each, first, end: (max(first, end - each), end))


def oldest(broker: Broker, name: str, limit: int) -> tuple[Delivered, ...]:
    """The first `limit` records, or fewer once they are many bytes; else as `newest`."""
    return _looked(broker, name, limit, lambda each, first, end: (first, min(end, first + each)), AT_ONCE)


def _looked(
    broker: Broker, name: str, limit: int, span: _Span, most: int | None = None
) -> tuple[Delivered, ...]:
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
            return tuple(_read(broker, consumer, _placed(broker, consumer, name, limit, span), most))
        finally:
            consumer.close(autocommit=False, timeout_ms=broker.milliseconds)
    except errors.KafkaError as error:
        raise BrokerAway.silent(error) from error


def _placed(broker: Broker, consumer: Any, name: str, limit: int, span: _Span) -> dict[Any, int]:
    """Put the consumer where it is to begin; returns where it ends, by partition."""
    places = [
        TopicPartition(name, partition) for partition in sorted(consumer.partitions_for_topic(name) or ())
    ]
    consumer.assign(places)
    first = consumer.beginning_offsets(places, timeout_ms=broker.milliseconds)
    ends = consumer.end_offsets(places, timeout_ms=broker.milliseconds)
    each = -(-max(limit, 0) // max(len(places), 1))
    spans = {place: span(each, first[place], ends[place]) for place in places}
    for place, (begin, _) in spans.items():
        consumer.seek(place, begin)
    return {place: end for place, (_, end) in spans.items()}


def _read(broker: Broker, consumer: Any, ends: dict[Any, int], most: int | None) -> list[Delivered]:
    found: list[Delivered] = []
    size = 0
    end = time.monotonic() + broker.timeout_seconds
    while any(consumer.position(place, timeout_ms=broker.milliseconds) < ends[place] for place in ends):
        for place, records in consumer.poll(WAIT_MS).items():
            taken = [one for one in records if one.offset < ends[place]]
            found += taken
            size += sum(len(one.value) for one in taken)
            end = time.monotonic() + broker.timeout_seconds
        if most is not None and size >= most:
            break
        if time.monotonic() >= end:
            raise errors.KafkaTimeoutError("it has not given all of the records that it has")
    return found
