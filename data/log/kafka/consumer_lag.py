"""Measures how far a group is behind, and the brokers' latest time, without being a member of any group."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kafka import errors
from kafka.protocol.consumer.offsets import OffsetSpec
from kafka.structs import TopicPartition

from predrain.data.log.kafka.broker import Broker, TopicMissing
from predrain.data.log.kafka.kafka_topics import TopicAdministration
from predrain.data.log.kafka.preflight_check import check_broker_topics
from predrain.data.log.log_port import Topic

PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class ConsumerLag:
    """Records of a topic that a group has not done yet.

    `newest` is the brokers' latest stamp; None in an empty topic.
    """

    records: int
    newest: datetime | None
    dropped: int = 0
    """Records that retention dropped since the group's last commit."""


def measure_consumer_lag(broker: Broker, topic: Topic, group: str) -> ConsumerLag:
    """Measure the lag of `group` (data.log.log_port) on `topic`. Raises BrokerAway, BrokerRefuses, TopicMissing."""
    name = broker.broker_topic_name(topic)
    if name not in check_broker_topics(broker, name):
        raise TopicMissing(name)
    with TopicAdministration(broker) as admin:
        (described,) = admin.describe_topics([name])
        places = [TopicPartition(name, one["partition_index"]) for one in described["partitions"]]

        def at(spec: Any) -> dict[Any, Any]:
            found: dict[Any, Any] = admin.list_partition_offsets(dict.fromkeys(places, spec))
            return found

        first, ends, stamped = at(OffsetSpec.EARLIEST), at(OffsetSpec.LATEST), at(OffsetSpec.MAX_TIMESTAMP)
        done = _list_committed_offsets(broker, admin, f"{name}.{group}", places)
    stood = {one: _find_group_offset(done.get(one), first[one].offset) for one in places}
    behind = sum(ends[one].offset - max(first[one].offset, stood[one]) for one in places)
    dropped = sum(max(0, first[one].offset - stood[one]) for one in places)
    newest = max((one.timestamp for one in stamped.values()), default=-1)
    return ConsumerLag(behind, datetime.fromtimestamp(newest / 1000, UTC) if newest > 0 else None, dropped)


def _list_committed_offsets(
    broker: Broker, admin: Any, group: str, places: list[TopicPartition]
) -> dict[Any, Any]:
    """Return the group's committed offsets.

    Brokers that had no group yet need a moment to choose the coordinator of its offsets.
    """
    end = time.monotonic() + broker.timeout_seconds
    while True:
        try:
            found: dict[Any, Any] = admin.list_group_offsets({group: places})[group]
            return found
        except (
            errors.CoordinatorNotAvailableError,
            errors.NotCoordinatorError,
            errors.CoordinatorLoadInProgressError,
        ):
            if time.monotonic() >= end:
                raise
        time.sleep(PAUSE_SECONDS)


def _find_group_offset(committed: Any, first: int) -> int:
    """Return the group's offset; a group that has done nothing begins at `first`, the first offset that is there."""
    return committed.offset if committed is not None and committed.offset >= 0 else first
