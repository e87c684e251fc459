"""Records of a topic for a reader outside all groups: it moves no group's offset and shares no partitions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kafka import KafkaConsumer, errors
from kafka.structs import TopicPartition

from predrain.data.log.kafka.broker import LONGEST_BATCH, Broker, BrokerAway, TopicMissing, making_none
from predrain.data.log.kafka.preflight_check import check_broker_topics
from predrain.data.log.kafka.record_batches import AT_ONCE, install_bounded_reader
from predrain.data.log.log_port import Delivered

WAIT_MS = 100

_Span = Callable[[int, int, int], tuple[int, int]]
"""Gives the offsets to begin and to end at, from the number of records of each partition, its first offset and its
end."""


def read_newest_records(broker: Broker, name: str, limit: int) -> tuple[Delivered, ...]:
    """Return the last `limit` records of the topic `name`, spread evenly over its partitions, oldest first in each.

    Raises BrokerAway, BrokerRefuses and TopicMissing.
    """
    return _read_offset_spans(broker, name, limit, lambda each, first, end: (max(first, end - each), end))


def read_oldest_records(broker: Broker, name: str, limit: int) -> tuple[Delivered, ...]:
    """Return the first `limit` records, or fewer once they exceed AT_ONCE bytes. Raises as `read_newest_records`."""
    return _read_offset_spans(
        broker, name, limit, lambda each, first, end: (first, min(end, first + each)), AT_ONCE
    )


def _read_offset_spans(
    broker: Broker, name: str, limit: int, span: _Span, most: int | None = None
) -> tuple[Delivered, ...]:
    if name not in check_broker_topics(broker, name):
        raise TopicMissing(name)
    try:
        consumer = install_bounded_reader(
            KafkaConsumer(
                **broker.build_client_options(),
                enable_auto_commit=False,
                max_partition_fetch_bytes=LONGEST_BATCH,
                metrics_enabled=False,
            )
        )
        making_none(consumer._cluster)
        try:
            return tuple(
                _poll_until_offsets(
                    broker, consumer, _seek_partitions(broker, consumer, name, limit, span), most
                )
            )
        finally:
            consumer.close(autocommit=False, timeout_ms=broker.timeout_milliseconds)
    except errors.KafkaError as error:
        raise BrokerAway.from_unanswered(error) from error


def _seek_partitions(broker: Broker, consumer: Any, name: str, limit: int, span: _Span) -> dict[Any, int]:
    """Seek to the begin of each partition's span; return its end, by partition."""
    places = [
        TopicPartition(name, partition) for partition in sorted(consumer.partitions_for_topic(name) or ())
    ]
    consumer.assign(places)
    first = consumer.beginning_offsets(places, timeout_ms=broker.timeout_milliseconds)
    ends = consumer.end_offsets(places, timeout_ms=broker.timeout_milliseconds)
    each = -(-max(limit, 0) // max(len(places), 1))
    spans = {place: span(each, first[place], ends[place]) for place in places}
    for place, (begin, _) in spans.items():
        consumer.seek(place, begin)
    return {place: end for place, (_, end) in spans.items()}


def _poll_until_offsets(
    broker: Broker, consumer: Any, ends: dict[Any, int], most: int | None
) -> list[Delivered]:
    found: list[Delivered] = []
    size = 0
    end = time.monotonic() + broker.timeout_seconds
    while any(
        consumer.position(place, timeout_ms=broker.timeout_milliseconds) < ends[place] for place in ends
    ):
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
