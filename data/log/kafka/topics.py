"""Topics on the broker: made by us, as they were told to be, and never changed once they are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kafka import KafkaAdminClient, errors

from predrain.data.log.kafka.broker import LONGEST_BATCH, Broker, BrokerAway, BrokerRefuses
from predrain.data.log.kafka.preflight_check import greet
from predrain.data.log.port import Topic

_WEEK_MS = 7 * 86_400_000
"""When brokers close a segment of themselves."""


@dataclass(frozen=True, slots=True)
class TopicShape:
    """How a topic is made: how many processes of a group can share it, and how long it keeps a record."""

    partitions: int
    retention: timedelta


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """A topic of ours as the broker has it; `made` now, or found."""

    topic: Topic
    name: str
    partitions: int
    replicas: int
    made: bool = False
    trouble: str | None = None
    """A sentence where it is not what it was told to be."""


def ensure_topics(
    broker: Broker, shapes: Mapping[Topic, TopicShape], *, replicas: int, in_sync: int
) -> tuple[TopicStatus, ...]:
    """Make those of `shapes` that are not there, each on `replicas` brokers, of which `in_sync` must have a record
    before it is acknowledged. What is there stays as it is, and is told where it has other partitions.

    Raises BrokerAway, and BrokerRefuses where we may not make topics or there are fewer brokers than `replicas`.
    """
    there = {one.topic for one in list_topics(broker, shapes)}
    wanted = {
        broker.topic(topic): {
            "num_partitions": shape.partitions,
            "replication_factor": replicas,
            "configs": _configuration(shape, in_sync),
        }
        for topic, shape in shapes.items()
        if topic not in there
    }
    if wanted:
        with Administration(broker) as admin:
            _make(broker, admin, wanted)
    found = list_topics(broker, shapes)
    return tuple(
        TopicStatus(one.topic, one.name, one.partitions, one.replicas, one.topic not in there, one.trouble)
        for one in found
    )


def list_topics(broker: Broker, shapes: Mapping[Topic, TopicShape]) -> tuple[TopicStatus, ...]:
    """Those of `shapes` that the broker has, in their order. Raises BrokerAway and BrokerRefuses."""
    there = greet(broker, *(broker.topic(topic) for topic in shapes))
    names = {broker.topic(topic): topic for topic in shapes if broker.topic(topic) in there}
    if not names:
        return ()
    with Administration(broker) as admin:
        described = {one["name"]: one["partitions"] for one in admin.describe_topics(list(names))}
    return tuple(
        TopicStatus(
            topic,
            name,
            len(described[name]),
            min((len(one["replica_nodes"]) for one in described[name]), default=0),
            trouble=_trouble(name, len(described[name]), shapes[topic]),
        )
        for name, topic in names.items()
    )


def _make(broker: Broker, admin: Any, wanted: Mapping[str, Mapping[str, Any]]) -> None:
    answer = admin.create_topics(wanted, timeout_ms=broker.milliseconds, raise_errors=False)
    for topic in answer["topics"]:
        kind = errors.for_code(topic["error_code"])
        if kind in (errors.NoError, errors.TopicAlreadyExistsError):  # another of us was faster
            continue
        cure = {
            errors.InvalidReplicationFactorError: "there are fewer brokers than replicas: set replicas to their number",
            errors.TopicAuthorizationFailedError: "this user may not make topics: let one make them who may",
            errors.ClusterAuthorizationFailedError: "this user may not make topics: let one make them who may",
        }.get(kind, "see the broker's log")
        said = topic.get("error_message") or kind.__name__
        raise BrokerRefuses(f"the topic {topic['name']} cannot be made ({said.rstrip('.')}); {cure}")
    admin.wait_for_topics(list(wanted), timeout_ms=broker.milliseconds)


def _configuration(shape: TopicShape, in_sync: int) -> dict[str, str]:
    retention = shape.retention.total_seconds() * 1000
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(round(retention)),
        # Whole segments are dropped, and by default one takes a week to close: a day's records would lie there for 8.
        "segment.ms": str(round(min(retention / 7, _WEEK_MS))),
        "max.message.bytes": str(LONGEST_BATCH),
        "min.insync.replicas": str(in_sync),
        # A host whose clock is wrong must neither be refused nor have its records dropped before their time.
        "message.timestamp.type": "LogAppendTime",
    }


def _trouble(name: str, partitions: int, shape: TopicShape) -> str | None:
    if partitions == shape.partitions:
        return None
    return (
        f"the topic {name} has {partitions} partitions and not {shape.partitions}: it is left so, since a drive's"
        " records would change their partition and lose their order; change it by hand while the log is read to its end"
    )


class Administration:
    """The broker's administration, with what it says in our words."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def __enter__(self) -> Any:
        try:
            self._client = KafkaAdminClient(
                **self._broker.options(), request_timeout_ms=self._broker.milliseconds
            )
        except errors.KafkaError as error:
            greet(self._broker)
            raise BrokerAway.silent(error) from error
        return self._client

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._client.close()
        if isinstance(error, errors.KafkaError):
            greet(self._broker)
            raise BrokerAway.silent(error) from error
