"""The faults that a reader meets in a long life: a broker that stands still, moves, or forgets a topic. The reader
reports each fault and goes on.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.structs import OffsetAndMetadata, TopicPartition

from predrain.data.log.kafka import (
    Broker,
    BrokerAway,
    KafkaLog,
    TopicMissing,
    TopicShape,
    check_broker_topics,
    ensure_topics,
)
from predrain.data.log.log_port import Delivered, LogFull, Record, Topic
from tests.deadlines import idle_seconds
from tests.ports import hold_port
from tests.system.kafka.broker import Broker as Process
from tests.system.kafka.conftest import Make

PATIENCE = 120.0


@pytest.fixture(scope="module")
def own(broker: Process, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A broker that no other test uses."""
    process = Process(tmp_path_factory.mktemp("stray"))
    try:
        yield process.start()
    finally:
        process.freeze(False)
        process.stop()


def viewed(process: Process, partitions: int = 1) -> Broker:
    view = Broker((process.address(),), prefix=f"{uuid.uuid4().hex[:8]}.", timeout_seconds=5.0)
    ensure_topics(
        view, dict.fromkeys(Topic, TopicShape(partitions, timedelta(days=1))), replicas=1, in_sync=1
    )
    return view


def until_given(log: KafkaLog, wanted: set[bytes]) -> tuple[Delivered, ...]:
    """Read, in spite of failed attempts, until one read returns all of these values; return its records."""
    end = idle_seconds() + PATIENCE
    while idle_seconds() < end:
        try:
            given = log.read(Topic.READINGS, "worker", 100)
        except LogFull:
            continue
        if {one.value for one in given} >= wanted:
            return given
    raise AssertionError("they do not come")


def until_taken(log: KafkaLog, record: Record) -> None:
    end = idle_seconds() + PATIENCE
    while idle_seconds() < end:
        try:
            log.append(Topic.READINGS, [record])
        except LogFull:
            continue
        return
    raise AssertionError("it is not taken")


def until_missing(call: Callable[[], object]) -> None:
    """The broker takes a moment to forget, and then says so itself."""
    end = idle_seconds() + PATIENCE
    while idle_seconds() < end:
        try:
            call()
        except TopicMissing:
            return
        except BrokerAway:
            continue
    raise AssertionError("nobody says that the topic is missing")


def test_a_reader_reports_a_frozen_broker_in_time_and_reads_on_once_the_broker_answers(own: Process) -> None:
    view = viewed(own)
    with closing(KafkaLog(view)) as log:
        log.append(Topic.READINGS, [Record("k", b"one")])
        given = until_given(log, {b"one"})
        own.freeze(True)
        calls: tuple[Callable[[], object], ...] = (
            lambda: log.commit(Topic.READINGS, "worker", given),
            lambda: log.read(Topic.READINGS, "worker", 10),
            lambda: log.read_newest(Topic.READINGS, 10),
        )
        for call in calls:
            began = idle_seconds()
            with pytest.raises(BrokerAway, match=r"does not answer within 3 s|did not answer in time"):
                call()
            assert idle_seconds() - began < 60
        own.freeze(False)
        until_taken(log, Record("k", b"two"))
        assert [one.value for one in until_given(log, {b"two"})][-1] == b"two"
        given = until_given(log, {b"two"})
        log.commit(Topic.READINGS, "worker", given)
        assert log.read(Topic.READINGS, "worker", 10) == ()


def test_a_reader_finds_its_broker_under_another_address(tmp_path: Path, broker: Process) -> None:
    process = Process(tmp_path)
    try:
        process.start()
        port = hold_port()
        view = viewed(process)
        view = replace(view, bootstrap=(*view.bootstrap, f"127.0.0.1:{port}"))
        with closing(KafkaLog(view)) as log:
            log.append(Topic.READINGS, [Record("k", b"one")])
            log.commit(Topic.READINGS, "worker", until_given(log, {b"one"}))
            process.stop()
            process.move(port)
            process.start()
            until_taken(log, Record("k", b"two"))
            assert [one.value for one in until_given(log, {b"two"})] == [b"two"]
    finally:
        process.stop()


def test_a_topic_that_was_deleted_is_named_and_read_again_once_it_is_made_anew(make: Make) -> None:
    view = replace(make(), timeout_seconds=5.0)
    admin = KafkaAdminClient(bootstrap_servers=list(view.bootstrap))
    with closing(KafkaLog(view)) as log, closing(admin):
        log.append(Topic.READINGS, [Record("k", b"old")])
        given = until_given(log, {b"old"})
        admin.delete_topics([view.broker_topic_name(Topic.READINGS)])
        for call in (
            lambda: log.read(Topic.READINGS, "worker", 10),
            lambda: log.append(Topic.READINGS, [Record("k", b"lost")]),
            lambda: log.commit(Topic.READINGS, "worker", given),
        ):
            until_missing(call)
        ensure_topics(view, {Topic.READINGS: TopicShape(1, timedelta(days=1))}, replicas=1, in_sync=1)
        until_taken(log, Record("k", b"new"))
        assert [one.value for one in until_given(log, {b"new"})][-1] == b"new"


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "read"])
def test_a_topic_made_anew_while_its_reader_looked_away_is_read_from_its_beginning(
    make: Make, committed: bool
) -> None:
    """Offsets that it knew mean nothing any more."""
    view = replace(make(), timeout_seconds=5.0)
    name, new = view.broker_topic_name(Topic.READINGS), [b"new 0", b"new 1", b"new 2"]
    with closing(KafkaLog(view)) as log, closing(KafkaLog(view)) as sender, closing(_admin(view)) as admin:
        sender.append(Topic.READINGS, [Record("k", b"old %d" % number) for number in range(5)])
        given = until_given(log, {b"old 4"})
        if committed:
            log.commit(Topic.READINGS, "worker", given)
        admin.delete_topics([name])
        while name in check_broker_topics(view, name):
            time.sleep(0.02)
        ensure_topics(view, {Topic.READINGS: TopicShape(1, timedelta(days=1))}, replicas=1, in_sync=1)
        for value in new:
            until_taken(sender, Record("k", value))
        found: list[bytes] = []
        end = idle_seconds() + PATIENCE
        while found[-3:] != new and idle_seconds() < end:
            try:
                given = log.read(Topic.READINGS, "worker", 100)
                log.commit(Topic.READINGS, "worker", given)
            except LogFull:
                continue
            found += [one.value for one in given if one.value not in found]
        assert found[-3:] == new


def test_a_topic_that_lost_its_end_is_read_from_its_beginning_and_on(make: Make) -> None:
    """As after an election of a replica that was behind: the group stands where nothing is."""
    view = replace(make(), timeout_seconds=5.0)
    name = view.broker_topic_name(Topic.READINGS)
    beyond = {TopicPartition(name, 0): OffsetAndMetadata(1000, "", -1)}
    with closing(KafkaLog(view)) as log, closing(_admin(view)) as admin:
        log.append(Topic.READINGS, [Record("k", b"one"), Record("k", b"two")])
        with closing(KafkaLog(view)) as before:
            before.commit(Topic.READINGS, "worker", until_given(before, {b"one", b"two"}))
        admin.alter_group_offsets(f"{name}.worker", beyond)
        log.commit(Topic.READINGS, "worker", until_given(log, {b"one", b"two"}))
        assert log.read(Topic.READINGS, "worker", 10) == ()
        log.append(Topic.READINGS, [Record("k", b"three")])
        given = until_given(log, {b"three"})
        assert [one.value for one in given] == [b"three"]
        log.commit(Topic.READINGS, "worker", given)
    with closing(KafkaLog(view)) as log:
        log.append(Topic.READINGS, [Record("k", b"four")])
        assert [one.value for one in until_given(log, {b"four"})] == [b"four"]


def test_a_running_producer_uses_added_partitions_in_the_same_way_as_a_new_producer(make: Make) -> None:
    """Else a drive's readings would come by two partitions, to two workers in turns."""
    view = make()
    drives = [f"drive-{number}" for number in range(40)]
    with closing(KafkaLog(view)) as old, closing(KafkaLog(view)) as new, closing(_admin(view)) as admin:
        old.append(Topic.READINGS, [Record("k", b"one")])
        admin.create_partitions({view.broker_topic_name(Topic.READINGS): 4})
        old._writer._producer._metadata.request_update()  # as the client does by itself, every few minutes
        time.sleep(2)
        for log in (old, new):
            log.append(Topic.READINGS, [Record(drive, b"two") for drive in drives])
        found = [one for one in new.read_newest(Topic.READINGS, 400) if one.key != "k"]
        by_drive = {drive: {one.partition for one in found if one.key == drive} for drive in drives}
    assert len(found) == 80
    assert all(len(partitions) == 1 for partitions in by_drive.values())
    assert len(set().union(*by_drive.values())) == 4


def _admin(view: Broker) -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=list(view.bootstrap))


@pytest.mark.parametrize("what", ["read", "commit"])
def test_a_topic_that_was_deleted_is_named_by_a_group_that_has_shared_out_its_nothing(
    make: Make, what: str
) -> None:
    view = replace(make(), timeout_seconds=5.0)
    admin = KafkaAdminClient(bootstrap_servers=list(view.bootstrap))
    with closing(KafkaLog(view)) as log, closing(admin):
        log.append(Topic.READINGS, [Record("k", b"old")])
        given = until_given(log, {b"old"})
        admin.delete_topics([view.broker_topic_name(Topic.READINGS)])
        consumer = log._reader(Topic.READINGS, "worker")._consumer
        consumer._cluster.request_update()  # as the client does by itself, every few minutes
        for _ in range(30):
            consumer.poll(100)
        until_missing(
            (lambda: log.read(Topic.READINGS, "worker", 10))
            if what == "read"
            else (lambda: log.commit(Topic.READINGS, "worker", given))
        )
