"""Records that retention drops before a worker took them are lost, and are reported with their number and the cure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.structs import TopicPartition
from structlog.testing import capture_logs

from predrain.data.log.kafka import Broker, KafkaLog, measure_consumer_lag
from predrain.data.log.log_port import Record, Topic
from tests.system.kafka.conftest import Make


@pytest.fixture
def shared(make: Make) -> Broker:
    """Readings of one partition: the worker took 2 of 10, then retention dropped 6."""
    shared = make()
    with closing(KafkaLog(shared)) as log:
        log.append(Topic.READINGS, [Record("a", b"%d" % number) for number in range(10)])
        log.commit(Topic.READINGS, "worker", log.read(Topic.READINGS, "worker", 2))
    admin: Any = KafkaAdminClient(**shared.build_client_options())
    with closing(admin):
        admin.delete_records({TopicPartition(shared.broker_topic_name(Topic.READINGS), 0): 6})
    return shared


@pytest.fixture
def log(shared: Broker) -> Iterator[KafkaLog]:
    with closing(KafkaLog(shared)) as log:
        yield log


def test_a_worker_that_comes_too_late_says_once_how_much_it_missed_and_goes_on(log: KafkaLog) -> None:
    with capture_logs() as said:
        for _ in range(2):
            assert [one.value for one in log.read(Topic.READINGS, "worker", 10)] == [b"6", b"7", b"8", b"9"]
    (line,) = said
    assert (line["event"], line["records"]) == ("lost", 4)
    assert "retention" in line["reason"]


def test_records_dropped_before_a_group_first_reads_are_not_reported_as_lost(log: KafkaLog) -> None:
    with capture_logs() as said:
        assert len(log.read(Topic.READINGS, "archive", 10)) == 4
    assert said == []


def test_the_consumer_lag_shows_the_records_dropped_by_retention_before_the_worker_reads_on(
    shared: Broker,
) -> None:
    found = measure_consumer_lag(shared, Topic.READINGS, "worker")
    assert (found.records, found.dropped) == (4, 4)
    assert measure_consumer_lag(shared, Topic.READINGS, "archive").dropped == 0
