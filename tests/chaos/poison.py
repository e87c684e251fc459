"""Records that nobody can take, of every kind, each with a mark by which its dead letter is known."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any, NamedTuple

import msgspec
import zstandard
from kafka import KafkaProducer

from predrain.data.clock import SystemClock
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.latency_windows import LatencyBatch, LatencySummary, LatencyWindows
from predrain.data.log.kafka import Broker
from predrain.data.log.log_port import Topic
from predrain.data.reading import Reading, Unreadable
from predrain.data.wire import encode_envelope

ACKNOWLEDGED_SECONDS = 60.0


class Bad(NamedTuple):
    """A record as a foreign program writes it."""

    topic: Topic
    what: str
    key: bytes | None
    value: bytes | None


class Place(NamedTuple):
    """The place at which the broker stored a record, and which the dead letter of the record names."""

    topic: Topic
    partition: int
    offset: int


def of_every_kind(random: Random) -> Iterator[Bad]:
    """One record of each kind."""
    now = SystemClock().now()
    reading = Reading(DeviceId("POISON_0"), HostName("nowhere"), now, now, Unreadable(now, "poison"))
    batch = LatencyBatch(HostName("nowhere"), (), 0)
    whole = encode_envelope(reading, producer="poison", sequence=random.getrandbits(60), sent_at=now)
    other = encode_envelope(batch, producer="poison", sequence=random.getrandbits(60), sent_at=now)
    ahead = Reading(reading.device, reading.host, now + timedelta(days=1), now, reading.seen)
    backwards = LatencyBatch(
        HostName("nowhere"),
        LatencyWindows.from_summaries([LatencySummary(OsdId(1), HostName("nowhere"), now, -60.0, 0)]),
        0,
    )
    key = b"POISON_%d" % random.getrandbits(32)
    for topic, right, wrong in ((Topic.READINGS, whole, other), (Topic.LATENCY, other, whole)):
        yield Bad(topic, "garbage", key, random.randbytes(300))
        yield Bad(topic, "truncated zstd", key, zstandard.compress(right)[:-7])
        yield Bad(topic, "future schema", key, _changed(right, version=99))
        yield Bad(topic, "wrong body", key, _changed(right, body={"osd": random.getrandbits(32)}))
        yield Bad(topic, "wrong topic", key, wrong)
        yield Bad(topic, "cut off", key, right[: len(right) // 2])
        yield Bad(topic, "too long", key, b" " * (3 << 19) + right)
        yield Bad(topic, "no key", None, random.randbytes(30))
        yield Bad(topic, "key that is no text", b"\xff\xfe" + key, random.randbytes(30))
        yield Bad(topic, "no value", key, None)
    yield Bad(
        Topic.READINGS,
        "from tomorrow",
        key,
        encode_envelope(ahead, producer="poison", sequence=0, sent_at=now),
    )
    yield Bad(
        Topic.LATENCY,
        "negative window",
        key,
        encode_envelope(backwards, producer="poison", sequence=0, sent_at=now),
    )


def send(broker: Broker, records: Iterator[Bad]) -> list[tuple[Bad, Place]]:
    """Write `records`; returns where each is. Raises KafkaError when one is not acknowledged."""
    producer = KafkaProducer(
        **broker.build_client_options(), acks="all", enable_idempotence=True, max_request_size=4 << 20
    )
    try:
        sent = [
            (bad, producer.send(broker.broker_topic_name(bad.topic), bad.value, bad.key)) for bad in records
        ]
        found = [(bad, future.get(ACKNOWLEDGED_SECONDS)) for bad, future in sent]
    finally:
        producer.close(timeout=ACKNOWLEDGED_SECONDS)
    return [(bad, Place(bad.topic, told.partition, told.offset)) for bad, told in found]


def _changed(envelope: bytes, **fields: Any) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(envelope), **fields})
