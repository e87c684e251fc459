"""How far a group is behind, and what time the brokers think it is: for who looks on, as no member of any group."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kafka import errors
from kafka.protocol.consumer.offsets import OffsetSpec
from kafka.structs import TopicPartition

from predrain.data.log.kafka.broker import Broker, TopicMissing
from predrain.data.log.kafka.preflight_check import greet
from predrain.data.log.kafka.topics import Administration
from predrain.data.log.port import Topic

PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Lag:
    """Records of a topic that a group has not done yet; `newest` is the brokers' latest stamp, None in an empty one."""

    records: int
    newest: datetime | None
    dropped: int = 0
    """Records that retention dropped since the group did its last."""


def lag(broker: Broker, topic: Topic, group: str) -> Lag:
    """Of `group` (data.log.port) on `topic`. Raises BrokerAway, BrokerRefuses, TopicMissing."""
    name = broker.topic(topic)
    if name not in greet(broker, name):
        raise TopicMissing(name)
    with Administration(broker) as admin:
        (described,) = admin.describe_topics([name])
        places = [TopicPartition(name, one["partition_index"]) for one in described["partitions"]]

        def at(spec: Any) -> dict[Any, Any]:
            found: dict[Any, Any] = admin.list_partition_offsets(dict.fromkeys(places, spec))
            return found

        first, ends, stamped = at(OffsetSpec.EARLIEST), at(OffsetSpec.LATEST), at(OffsetSpec.MAX_TIMESTAMP)
        done = _done(broker, admin, f"{name}.{group}", places)
    stood = {one: _offset(done.get(one), first[one].offset) for one in places}
    behind = sum(ends[one].offset - max(first[one].offset, stood[one]) for one in places)
    dropped = sum(max(0, first[one].offset - stood[one]) for one in places)
    newest = max((one.timestamp for one in stamped.values()), default=-1)
    return Lag(behind, datetime.fromtimestamp(newest / 1000, UTC) if newest > 0 else None, dropped)


def _done(broker: Broker, admin: Any, group: str, places: list[TopicPartition]) -> dict[Any, Any]:
    """What the group has committed. Brokers that had no group yet need a moment to choose who keeps its offsets."""
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


def _offset(committed: Any, first: int) -> int:
    """Where a group stands; one that has done nothing begins at the `first` that is there."""
    return committed.offset if committed is not None and committed.offset >= 0 else first
