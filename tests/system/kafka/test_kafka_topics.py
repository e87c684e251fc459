"""Topics are made once, in the shape that is asked for, and are never changed in passing."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from predrain.data.log.kafka import Broker, BrokerRefuses, TopicShape, ensure_topics, list_topics
from predrain.data.log.log_port import Topic
from tests.system.kafka.broker import Broker as Process

SHAPES = {Topic.READINGS: TopicShape(3, timedelta(days=2)), Topic.ACTIONS: TopicShape(1, timedelta(days=400))}


@pytest.fixture
def new(broker: Process) -> Broker:
    """A broker that has no topic of ours."""
    return Broker((broker.address(),), prefix=f"{uuid.uuid4().hex[:8]}.")


def test_topics_are_made_once_with_their_partitions(new: Broker) -> None:
    assert list_topics(new, SHAPES) == ()
    made = ensure_topics(new, SHAPES, replicas=1, in_sync=1)
    assert [(one.topic, one.partitions, one.made) for one in made] == [
        (Topic.READINGS, 3, True),
        (Topic.ACTIONS, 1, True),
    ]
    found = ensure_topics(new, SHAPES, replicas=1, in_sync=1)
    assert found == tuple(replace(one, made=False) for one in made) == list_topics(new, SHAPES)
    assert [one.trouble for one in found] == [None, None]


def test_a_topic_keeps_what_it_was_told_and_trusts_no_clock_but_its_own(new: Broker) -> None:
    ensure_topics(new, SHAPES, replicas=1, in_sync=1)
    admin: Any = KafkaAdminClient(bootstrap_servers=new.bootstrap)
    name = new.broker_topic_name(Topic.READINGS)
    (described,) = admin.describe_configs(
        [ConfigResource(ConfigResourceType.TOPIC, name)], config_filter="all"
    ).values()
    admin.close()
    told = {key: entry["value"] for key, entry in described[name].items()}
    assert told["retention.ms"] == str(2 * 86_400_000)
    assert int(told["segment.ms"]) * 7 == pytest.approx(2 * 86_400_000), (
        "a record stays for its retention and a seventh"
    )
    assert told["message.timestamp.type"] == "LogAppendTime"
    assert int(told["max.message.bytes"]) > 2 << 20
    assert told["min.insync.replicas"] == "1"


def test_other_partitions_than_told_are_told_and_left(new: Broker) -> None:
    ensure_topics(new, SHAPES, replicas=1, in_sync=1)
    more = SHAPES | {Topic.READINGS: TopicShape(12, timedelta(days=2))}
    (readings, actions) = ensure_topics(new, more, replicas=1, in_sync=1)
    assert (readings.partitions, readings.made) == (3, False)
    assert "has 3 partitions and not 12: it is left so" in str(readings.trouble)
    assert actions.trouble is None


def test_more_replicas_than_brokers_are_refused_with_the_cure(new: Broker) -> None:
    with pytest.raises(
        BrokerRefuses, match=r"cannot be made .*fewer brokers than replicas: set replication_factor"
    ):
        ensure_topics(new, SHAPES, replicas=3, in_sync=2)
    assert list_topics(new, SHAPES) == ()
