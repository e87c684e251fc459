"""Topics on the broker: created in the given shape, and never changed once they exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kafka import KafkaAdminClient, errors

from predrain.data.log.kafka.broker import LONGEST_BATCH, Broker, BrokerAway, BrokerRefuses
from predrain.data.log.kafka.preflight_check import check_broker_topics
from predrain.data.log.log_port import Topic

_WEEK_MS = 7 * 86_400_000
"""Time in ms after which brokers close a segment by default."""


@dataclass(frozen=True, slots=True)
class TopicShape:
    """The shape of a topic: how many processes of a group can share it, and how long it keeps a record."""

    partitions: int
    retention: timedelta


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """A topic as the broker has it; `made` is True if it was created just now."""

    topic: Topic
    name: str
    partitions: int
    replicas: int
    made: bool = False
    trouble: str | None = None
    """A sentence if the topic differs from its given shape."""


def ensure_topics(
    broker: Broker, shapes: Mapping[Topic, TopicShape], *, replicas: int, in_sync: int
) -> tuple[TopicStatus, ...]:
    """Create the missing topics of `shapes`; existing ones stay as they are.

    Each is on `replicas` brokers, of which `in_sync` must have a record before it is acknowledged. A topic with
    another number of partitions is reported. Raises BrokerAway, and BrokerRefuses if this client may not create
    topics or there are fewer brokers than `replicas`.
    """
    there = {one.topic for one in list_topics(broker, shapes)}
    wanted = {
        broker.broker_topic_name(topic): {
            "num_partitions": shape.partitions,
            "replication_factor": replicas,
            "configs": _build_topic_config(shape, in_sync),
        }
        for topic, shape in shapes.items()
        if topic not in there
    }
    if wanted:
        with TopicAdministration(broker) as admin:
            _create_topics(broker, admin, wanted)
    found = list_topics(broker, shapes)
    return tuple(
        TopicStatus(one.topic, one.name, one.partitions, one.replicas, one.topic not in there, one.trouble)
        for one in found
    )


def list_topics(broker: Broker, shapes: Mapping[Topic, TopicShape]) -> tuple[TopicStatus, ...]:
    """Return those of `shapes` that the broker has, in their order. Raises BrokerAway and BrokerRefuses."""
    there = check_broker_topics(broker, *(broker.broker_topic_name(topic) for topic in shapes))
    names = {
        broker.broker_topic_name(topic): topic for topic in shapes if broker.broker_topic_name(topic) in there
    }
    if not names:
        return ()
    with TopicAdministration(broker) as admin:
        described = {one["name"]: one["partitions"] for one in admin.describe_topics(list(names))}
    return tuple(
        TopicStatus(
            topic,
            name,
            len(described[name]),
            min((len(one["replica_nodes"]) for one in described[name]), default=0),
            trouble=_describe_partition_mismatch(name, len(described[name]), shapes[topic]),
        )
        for name, topic in names.items()
    )


def _create_topics(broker: Broker, admin: Any, wanted: Mapping[str, Mapping[str, Any]]) -> None:
    answer = admin.create_topics(wanted, timeout_ms=broker.timeout_milliseconds, raise_errors=False)
    for topic in answer["topics"]:
        kind = errors.for_code(topic["error_code"])
        if kind in (errors.NoError, errors.TopicAlreadyExistsError):  # another process was faster
            continue
        cure = {
            errors.InvalidReplicationFactorError: (
                "there are fewer brokers than replicas: set replication_factor to their number"
            ),
            errors.TopicAuthorizationFailedError: "this user may not make topics: let one make them who may",
            errors.ClusterAuthorizationFailedError: "this user may not make topics: let one make them who may",
        }.get(kind, "see the broker's log")
        said = topic.get("error_message") or kind.__name__
        raise BrokerRefuses(f"the topic {topic['name']} cannot be made ({said.rstrip('.')}); {cure}")
    admin.wait_for_topics(list(wanted), timeout_ms=broker.timeout_milliseconds)


def _build_topic_config(shape: TopicShape, in_sync: int) -> dict[str, str]:
    retention = shape.retention.total_seconds() * 1000
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(round(retention)),
        # Whole segments are dropped, and by default one takes a week to close: a day's records would stay for
        # 8 days.
        "segment.ms": str(round(min(retention / 7, _WEEK_MS))),
        "max.message.bytes": str(LONGEST_BATCH),
        "min.insync.replicas": str(in_sync),
        # A host with a wrong clock must neither be refused nor have its records dropped before their time.
        "message.timestamp.type": "LogAppendTime",
    }


def _describe_partition_mismatch(name: str, partitions: int, shape: TopicShape) -> str | None:
    if partitions == shape.partitions:
        return None
    return (
        f"the topic {name} has {partitions} partitions and not {shape.partitions}: it is left so, since a drive's"
        " records would change their partition and lose their order; change it by hand while the log is read to its end"
    )


class TopicAdministration:
    """The broker's administration client, with its errors as predrain's."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def __enter__(self) -> Any:
        try:
            self._client = KafkaAdminClient(
                **self._broker.build_client_options(), request_timeout_ms=self._broker.timeout_milliseconds
            )
        except errors.KafkaError as error:
            check_broker_topics(self._broker)
            raise BrokerAway.from_unanswered(error) from error
        return self._client

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._client.close()
        if isinstance(error, errors.KafkaError):
            check_broker_topics(self._broker)
            raise BrokerAway.from_unanswered(error) from error
