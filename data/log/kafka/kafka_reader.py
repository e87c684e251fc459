"""One group's share of one topic: read again until it is committed, and given up when other processes take it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from threading import RLock
from typing import Any

import structlog
from kafka import ConsumerRebalanceListener, KafkaConsumer, errors
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.structs import OffsetAndMetadata, TopicPartition

from predrain.data.log.kafka.broker import LONGEST_BATCH, Broker, BrokerAway, TopicMissing, making_none
from predrain.data.log.kafka.preflight_check import check_broker_topics
from predrain.data.log.kafka.record_batches import AT_ONCE, install_bounded_reader
from predrain.data.log.log_port import Delivered

STABLE = "<stable>"
"""kafka-python's word for a member of a group that is not rebalancing."""
SESSION_MS = 10_000
"""A killed process has lost its partitions after this time."""
HEARTBEAT_MS = 1_000
"""A member learns within this time that another member has joined or left."""
THINKING_MS = 300_000
"""A process that has not read for this long has also lost its partitions."""
LEAVING_MS = 3_000
PATIENCE = 2
"""Failures in a row, with a broker that accepts connections, after which a new consumer is made."""
WAIT_MS = 100
FETCH_MS = 50
"""The broker holds back this client's other requests while a fetch waits for records; the client's default is 500."""


class KafkaReader:
    """A consumer in `group`, made when it is first needed. Safe for several threads."""

    def __init__(self, broker: Broker, name: str, group: str) -> None:
        self._broker, self._name = broker, name
        # One group for each topic: otherwise a change in the readers of one topic would hold up those of
        # another.
        self._group = f"{name}.{group}"
        self._lock = RLock()
        self._changes = _Changes()
        self._consumer: Any = None
        self._topic: Any = None  # the topic's own id; a later topic of the same name has another
        self._failures = 0
        self._pending: list[Delivered] = []  # read and not committed; in each partition by offset
        self._last: dict[int, int] = {}  # the newest offset of each partition in `_pending`, or before it
        self._committed: dict[int, int] = {}  # offsets below this are not delivered any more, by partition

    @property
    def assignment_version(self) -> int:
        """A number that grows whenever this process was given partitions or lost some."""
        return self._changes.count

    def read(self, limit: int) -> tuple[Delivered, ...]:
        """Return up to `limit` uncommitted records: all that were there at the call, or that many.

        Return () while the group rebalances and waits for a busy member: records given out then could not be
        committed.
        """
        with self._lock:
            self._explained(self._fill, limit)
            return tuple(self._pending[: max(limit, 0)] if self._settled else ())

    def commit(self, done: Sequence[Delivered]) -> None:
        """Move on past `done`, in the partitions that are still this process's."""
        with self._lock:
            self._explained(self._commit, done)

    def close(self) -> None:
        """Leave the group, so that other members need not wait for this one."""
        with self._lock:
            self._drop()

    def _fill(self, limit: int) -> None:
        if self._made_anew:
            self._drop()
        if self._consumer is None:
            self._see()
            self._consumer = self._made()
            self._topic = self._consumer._cluster.topic_id(self._name)
        ends: dict[TopicPartition, int] = {}
        end = time.monotonic() + self._broker.timeout_seconds
        self._poll(limit, 0)
        while not (self._settled and (self._filled(limit) or self._caught_up(ends))):
            if time.monotonic() >= end:
                self._see()
                return
            self._poll(limit, WAIT_MS)
        if self._made_anew:
            self._drop()  # and read the topic from its beginning the next time
        else:
            self._doubt()

    def _doubt(self) -> None:
        """Check the topic if the client has lost sight of it: the client then reads nothing, and does not say so.

        Raises TopicMissing.
        """
        if self._consumer._cluster.partitions_for_topic(self._name) is None:
            self._see()

    def _see(self) -> None:
        """Check that the broker serves the topic now. Raises TopicMissing, and the errors of `check_broker_topics`."""
        if self._name not in check_broker_topics(self._broker, self._name):
            self._drop()
            raise TopicMissing(self._name)

    @property
    def _made_anew(self) -> bool:
        """True if the topic is another one of the same name now: its offsets begin again, and the known
        ones are void.
        """
        if self._consumer is None or self._topic is None:
            return False
        now = self._consumer._cluster.topic_id(self._name)
        return now is not None and now.int != 0 and now != self._topic

    @property
    def _settled(self) -> bool:
        """True if this process is a member of the group and the group is not rebalancing."""
        return self._consumer is not None and self._consumer.group_metadata().state == STABLE

    def _caught_up(self, ends: dict[TopicPartition, int]) -> bool:
        """Return whether all records up to `ends` are read: the end of each partition when it was first asked for."""
        ours = self._consumer.assignment()
        if new := ours - ends.keys():
            ends |= self._consumer.end_offsets(list(new), timeout_ms=self._broker.timeout_milliseconds)
        try:
            timeout = self._broker.timeout_milliseconds
            return all((self._consumer.position(one, timeout_ms=timeout) or 0) >= ends[one] for one in ours)
        except errors.IllegalStateError:  # lost since the assignment was read
            return False

    def _made(self) -> Any:
        consumer: Any = KafkaConsumer(
            **self._broker.build_client_options(),
            group_id=self._group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            partition_assignment_strategy=(CooperativeStickyAssignor,),
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=THINKING_MS,
            fetch_max_wait_ms=FETCH_MS,
            max_partition_fetch_bytes=LONGEST_BATCH,
            metrics_enabled=False,
        )
        making_none(consumer._cluster)
        install_bounded_reader(consumer).subscribe([self._name], listener=self._changes)
        # The first to join assigns the partitions that it knows of, which would be none yet.
        consumer.partitions_for_topic(self._name)
        return consumer

    def _poll(self, limit: int, wait_ms: int) -> None:
        """Show the group that this member is alive, and take the records that are still wanted."""
        if self._filled(limit):
            self._consumer.pause(*self._consumer.assignment())
        found = self._consumer.poll(wait_ms, max_records=max(1, limit - len(self._pending)))
        self._consumer.resume(*self._consumer.paused())
        self._forget(self._changes.take_lost())
        before = self._last.copy()
        for place, records in found.items():
            self._keep(place.partition, records)
        # This asks the broker, which may be away: the records that were read are stored by now.
        for place, records in found.items():
            self._miss(place, records[0].offset, before.get(place.partition))

    def _filled(self, limit: int) -> bool:
        return len(self._pending) >= limit or sum(len(one.value) for one in self._pending) >= AT_ONCE

    def _miss(self, place: TopicPartition, first: int, last: int | None) -> None:
        """Log records that the topic's retention dropped before the group took them: the client just goes on.

        `last` is the offset that was read before `first`; None if only the group knows it.
        """
        timeout = self._broker.timeout_milliseconds
        due = self._consumer.committed(place, timeout_ms=timeout) if last is None else last + 1
        if due is None or first <= due:
            return
        missed = self._consumer.beginning_offsets([place], timeout_ms=timeout)[place] - due
        if missed > 0:
            structlog.get_logger().error(
                "lost",
                records=missed,
                reason=f"the retention of {self._name} dropped them from partition {place.partition} before "
                f"{self._group}"
                " took them: let it run, start more of its processes, or keep the topic for longer",
            )

    def _keep(self, partition: int, records: Sequence[Delivered]) -> None:
        first, done = records[0].offset, self._committed.get(partition, 0)
        if first <= self._last.get(partition, -1):  # a rebalance has gone back to the committed offset
            self._pending = [one for one in self._pending if one.partition != partition or one.offset < first]
        if (
            first < done
        ):  # a rebalance, or a topic that begins again: the client would notice it only in 5 min
            self._consumer._cluster.request_update()
        self._last[partition] = records[-1].offset
        self._pending += [one for one in records if one.offset >= done]

    def _forget(self, lost: frozenset[int]) -> None:
        if lost:
            self._pending = [one for one in self._pending if one.partition not in lost]
            for partition in lost:
                self._last.pop(partition, None)
                self._committed.pop(partition, None)

    def _commit(self, done: Sequence[Delivered]) -> None:
        if self._made_anew:
            self._drop()
            return
        if not self._settled:
            self._fill(0)
        if not self._settled:
            return  # the process that then has the partitions is given these records again
        self._forget(self._changes.take_lost())
        ours = {one.partition for one in self._consumer.assignment()}
        through: dict[int, int] = {}
        for one in done:
            if one.partition in ours:
                through[one.partition] = max(one.offset + 1, through.get(one.partition, 0))
        moved = {place: offset for place, offset in map(self._moved, through.items()) if offset is not None}
        places = {
            TopicPartition(self._name, place): OffsetAndMetadata(to, "", -1) for place, to in moved.items()
        }
        if not places:
            self._doubt()
            return
        try:
            self._consumer.commit(places, timeout_ms=self._broker.timeout_milliseconds)
        except (errors.CommitFailedError, errors.RebalanceInProgressError):
            return
        self._committed |= moved
        self._pending = [one for one in self._pending if one.offset >= moved.get(one.partition, 0)]

    def _moved(self, through: tuple[int, int]) -> tuple[int, int | None]:
        """Return the partition and its group's new offset: never back, and not past the end; None if it stays."""
        (partition, offset), timeout = through, self._broker.timeout_milliseconds
        place = TopicPartition(self._name, partition)
        if partition not in self._committed:
            held = self._consumer.committed(place, timeout_ms=timeout) or 0
            ends = self._consumer.end_offsets([place], timeout_ms=timeout)
            # A topic that lost its end, or was created again, is read from its beginning: the committed
            # records are gone.
            self._committed[partition] = held if held <= ends[place] else 0
        if offset - 1 > self._last.get(partition, -1):
            offset = min(offset, self._consumer.end_offsets([place], timeout_ms=timeout)[place])
        return partition, offset if offset > self._committed[partition] else None

    def _explained(self, step: Any, argument: Any) -> None:
        """Do `step`; turn an error of the client into a sentence.

        If the broker accepts connections and still does not serve, the consumer knows a broker or a topic that no
        longer exists. It does not look for another by itself, so the next step makes a new consumer.
        """
        try:
            step(argument)
        except errors.KafkaError as error:
            there = check_broker_topics(self._broker, self._name)
            self._failures += 1
            if self._name not in there or self._failures >= PATIENCE:
                self._drop()
            if self._name not in there:
                raise TopicMissing(self._name) from error
            raise BrokerAway.from_unanswered(error) from error
        self._failures = 0

    def _drop(self) -> None:
        """Leave the group as it is; all uncommitted records are read again."""
        consumer, self._consumer, self._failures = self._consumer, None, 0
        self._pending, self._last, self._committed = [], {}, {}
        if consumer is not None:
            with suppress(errors.KafkaError):
                consumer.close(autocommit=False, timeout_ms=LEAVING_MS)


class _Changes(ConsumerRebalanceListener):  # type: ignore[misc]
    """Listens, on a thread of the client, for partitions that are assigned or revoked."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = RLock()
        self._lost: set[int] = set()

    def take_lost(self) -> frozenset[int]:
        """Return the partitions lost since the last call, whether or not they came back."""
        with self._lock:
            lost = frozenset(self._lost)
            self._lost.clear()
            return lost

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        with self._lock:
            self._lost.update(one.partition for one in revoked)
            self.count += 1

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:  # noqa: ARG002
        with self._lock:
            self.count += 1
