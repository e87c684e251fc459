"""From the spool into a real Kafka."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from predrain.collector.delivery import LogSink, Shipper, Spool
from predrain.data.clock import SystemClock
from predrain.data.log.log_port import Topic
from tests.collector.delivery.parcels import HOST, NOON, reading
from tests.system.kafka import jars
from tests.system.kafka.broker import Broker as Process

with warnings.catch_warnings():  # of how kafka-python reads its own schemas, once, while it is imported
    warnings.simplefilter("ignore", DeprecationWarning)
    from predrain.data.log.kafka import Broker, KafkaLog, TopicShape, ensure_topics

pytestmark = [pytest.mark.system, pytest.mark.slow]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    if why := jars.missing():
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    folder = tmp_path / "kafka"
    folder.mkdir()
    made = Process(folder)
    try:
        yield made.start()
    finally:
        made.stop()


def test_a_record_sent_to_kafka_twice_has_the_same_bytes_under_the_same_key(
    process: Process, tmp_path: Path
) -> None:
    broker = Broker((process.address(),))
    ensure_topics(broker, {Topic.READINGS: TopicShape(3, timedelta(days=1))}, replicas=1, in_sync=1)
    sink = LogSink(lambda: KafkaLog(broker))
    spool = Spool(tmp_path / "spool.db", HOST, Random(7))
    spool.accept([reading(disk) for disk in range(20)], NOON)
    batch = spool.take_batch()
    assert batch is not None
    sink.deliver(batch.topic, batch.records)
    spool.close()  # it ends before it can note that the log has them

    spool = Spool(tmp_path / "spool.db", HOST, Random(8))
    shipper = Shipper(spool, sink, SystemClock(), Random(7))
    assert shipper.ship_batch() == 0.0
    assert spool.read_status().readings == 0
    spool.close()
    sink.close()

    log = KafkaLog(broker)
    found = log.read(Topic.READINGS, "test", 1000)
    log.close()
    assert len(found) == 40
    values = {record.key: {one.value for one in found if one.key == record.key} for record in found}
    assert values == {record.key: {record.value} for record in batch.records}
