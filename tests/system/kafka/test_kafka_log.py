"""Over a real broker the log keeps what every log promises, and shares topics between processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event
from time import sleep
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from predrain.data.log.kafka import BrokerRefuses, KafkaLog, RecordTooLong, TopicMissing
from predrain.data.log.kafka.broker import LONGEST_BATCH
from predrain.data.log.log_port import Record, Topic
from predrain.data.wire import LONGEST
from tests.data.log_contract import LogContract
from tests.system.kafka.conftest import Make

DRIVES = [f"drive-{number}" for number in range(40)]


class TestKafkaLog(LogContract):
    """Topics of one partition."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Yield a stack whose resources are closed after the test."""
    with ExitStack() as stack:
        yield stack


def _logs(make: Make, stack: ExitStack, count: int) -> list[KafkaLog]:
    """So many logs on the same topics of four partitions, as so many processes have them."""
    broker = make(partitions=4)
    logs = [KafkaLog(broker) for _ in range(count)]
    for log in logs:
        stack.callback(log.close)
    return logs


def _round(name: str) -> list[Record]:
    return [Record(drive, f"{drive} {name}".encode()) for drive in DRIVES]


def _read_until(logs: list[KafkaLog], holds: Callable[[list[list[str]]], bool]) -> list[list[str]]:
    """The drives that each of `logs` is given, once they read side by side and it `holds`."""
    read_by: dict[int, list[str]] = {}
    done = Event()

    def read(place: int) -> None:
        while not done.is_set():
            read_by[place] = [one.key for one in logs[place].read(Topic.READINGS, "worker", 1000)]

    with ThreadPoolExecutor(len(logs)) as pool:
        for place in range(len(logs)):
            pool.submit(read, place)
        while len(read_by) < len(logs) or not holds([read_by[place] for place in range(len(logs))]):
            sleep(0.05)
        done.set()
    return [read_by[place] for place in range(len(logs))]


def _shared(given: list[list[str]]) -> bool:
    """Nobody is left out, and nothing is given twice."""
    return all(given) and sorted(drive for own in given for drive in own) == sorted(DRIVES)


@pytest.mark.core
def test_records_of_a_drive_stay_in_order_over_partitions(make: Make, stack: ExitStack) -> None:
    (log,) = _logs(make, stack, 1)
    for number in range(5):
        log.append(Topic.READINGS, _round(str(number)))
    given = log.read(Topic.READINGS, "worker", 1000)
    assert len({one.partition for one in given}) == 4
    for drive in DRIVES:
        own = [one for one in given if one.key == drive]
        assert [one.value for one in own] == [f"{drive} {number}".encode() for number in range(5)]
        assert len({one.partition for one in own}) == 1


def test_processes_of_a_group_share_the_drives_and_are_told(make: Make, stack: ExitStack) -> None:
    first, second = _logs(make, stack, 2)
    first.append(Topic.READINGS, _round("a"))
    assert len(first.read(Topic.READINGS, "worker", 1000)) == len(DRIVES)
    alone = first.read_assignment_version(Topic.READINGS, "worker")
    _read_until([first, second], _shared)
    together = first.read_assignment_version(Topic.READINGS, "worker")
    assert together != alone
    second.close()
    _read_until([first], _shared)
    assert first.read_assignment_version(Topic.READINGS, "worker") != together


def test_a_process_does_not_commit_the_records_of_partitions_that_another_process_took_over(
    make: Make, stack: ExitStack
) -> None:
    first, second, third = _logs(make, stack, 3)
    first.append(Topic.READINGS, _round("a"))
    everything = first.read(Topic.READINGS, "worker", 1000)
    _, theirs = _read_until([first, second], _shared)
    first.commit(Topic.READINGS, "worker", everything)
    first.close()
    second.close()
    assert {one.key for one in third.read(Topic.READINGS, "worker", 1000)} == set(theirs)


def test_a_process_beyond_the_number_of_partitions_waits_and_takes_over(make: Make, stack: ExitStack) -> None:
    broker = make(partitions=1)
    first, second = KafkaLog(broker), KafkaLog(broker)
    stack.callback(second.close)
    first.append(Topic.READINGS, _round("a"))
    assert len(first.read(Topic.READINGS, "worker", 1000)) == len(DRIVES)
    _read_until([first, second], lambda given: sorted(map(len, given)) == [0, len(DRIVES)])
    first.close()
    _read_until([second], _shared)


def test_a_batch_in_several_partitions_is_committed_as_far_as_it_was_done(
    make: Make, stack: ExitStack
) -> None:
    (log,) = _logs(make, stack, 1)
    log.append(Topic.READINGS, _round("a"))
    given = log.read(Topic.READINGS, "worker", 1000)
    log.commit(Topic.READINGS, "worker", given[:15])
    assert log.read(Topic.READINGS, "worker", 1000) == given[15:]
    log.close()
    (again,) = [KafkaLog(log._broker)]
    stack.callback(again.close)
    assert {(one.partition, one.offset) for one in again.read(Topic.READINGS, "worker", 1000)} == {
        (one.partition, one.offset) for one in given[15:]
    }


def test_read_newest_returns_the_newest_records_of_all_partitions_and_moves_no_offset(
    make: Make, stack: ExitStack
) -> None:
    (log,) = _logs(make, stack, 1)
    for number in range(3):
        log.append(Topic.ACTIONS, [Record("d", str(number).encode())])
    assert [one.value for one in log.read_newest(Topic.ACTIONS, 8)] == [b"1", b"2"]
    assert [one.value for one in log.read(Topic.ACTIONS, "other", 10)] == [b"0", b"1", b"2"]
    assert log.read_newest(Topic.OUTLOOKS, 5) == ()


@pytest.mark.core
def test_a_dead_letter_of_the_greatest_length_goes_through(log: KafkaLog) -> None:
    import random

    letters = [Record(str(seed), random.Random(seed).randbytes(2 * LONGEST)) for seed in range(3)]
    log.append(Topic.DEAD_LETTERS, letters)
    given = log.read(Topic.DEAD_LETTERS, "worker", 10)
    assert [(one.key, one.value) for one in given] == [(one.key, one.value) for one in letters]


def test_a_record_longer_than_any_that_is_ours_is_refused_and_nothing_of_its_batch_is_sent(
    log: KafkaLog,
) -> None:
    with pytest.raises(RecordTooLong, match="10,485,761 bytes is more than the log takes"):
        log.append(Topic.READINGS, [Record("a", b"fine"), Record("b", bytes(10 << 20))])
    assert log.read(Topic.READINGS, "worker", 10) == ()


def test_a_topic_that_takes_less_than_ours_do_is_told_with_the_cure_and_taken_up_once_it_is_mended(
    make: Make, stack: ExitStack
) -> None:
    import random

    shared = make()
    log = KafkaLog(shared)
    stack.callback(log.close)
    admin: Any = KafkaAdminClient(**shared.build_client_options())
    stack.callback(admin.close)

    def limit(most: int) -> None:
        name = shared.broker_topic_name(Topic.READINGS)
        admin.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, name, configs={"max.message.bytes": str(most)})]
        )

    limit(2_000)
    long = [Record("a", random.Random(1).randbytes(5_000))]
    with pytest.raises(
        BrokerRefuses, match=r"readings takes less at once .* max\.message\.bytes to 2,228,224"
    ):
        log.append(Topic.READINGS, long)
    limit(LONGEST_BATCH)
    log.append(Topic.READINGS, long)
    assert len(log.read(Topic.READINGS, "worker", 10)) == 1


def test_a_topic_that_is_missing_is_told_and_not_made_in_passing(make: Make, stack: ExitStack) -> None:
    log = KafkaLog(type(make())(make().bootstrap, prefix="never.made."))
    stack.callback(log.close)
    for attempt in range(2):
        with pytest.raises(TopicMissing, match=r"no topic never\.made\.readings.*predrain topics create"):
            log.append(Topic.READINGS, [Record("a", str(attempt).encode())])
        with pytest.raises(TopicMissing, match=r"no topic never\.made\.latency"):
            log.read(Topic.LATENCY, "worker", 1)


def test_trimming_is_left_to_the_topics_retention(log: KafkaLog) -> None:
    log.append(Topic.READINGS, _round("a"))
    log.commit(Topic.READINGS, "worker", log.read(Topic.READINGS, "worker", 1000))
    assert log.trim(Topic.READINGS, 10**9) == 0
    assert len(log.read(Topic.READINGS, "late", 1000)) == len(DRIVES)
