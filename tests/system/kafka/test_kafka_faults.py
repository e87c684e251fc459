"""Brokers die, stand still and come back; processes are killed. Acknowledged records stay, and nothing hangs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest

from predrain.data.log.kafka import BrokerAway, KafkaLog
from predrain.data.log.log_port import LogFull, Record, Topic
from tests.system.kafka.broker import Broker as Process
from tests.system.kafka.conftest import Make

ROOT = Path(__file__).resolve().parents[3]
KEYS = ("a", "b", "c", "d")


@pytest.fixture
def mortal(broker: Process) -> Iterator[Process]:
    """Yield the broker, and make it run again after a test that froze, stopped or killed it."""
    yield broker
    broker.freeze(False)
    if not broker.running:
        broker.start()


def _send(log: KafkaLog, key: str, until: Event) -> int:
    """Append numbers in pairs, each again until it is taken; the count of those that were."""
    number = 0
    while not until.is_set():
        pair = [Record(key, str(number + i).encode()) for i in range(2)]
        try:
            log.append(Topic.READINGS, pair)
        except LogFull:
            continue
        number += 2
    return number


def test_nothing_acknowledged_is_lost_or_out_of_order_when_the_broker_is_killed(
    mortal: Process, make: Make
) -> None:
    view = make(partitions=3)
    until = Event()
    with closing(KafkaLog(view)) as log, ThreadPoolExecutor(len(KEYS)) as pool:
        counts = [pool.submit(_send, log, key, until) for key in KEYS]
        for _ in range(2):
            before = len(log.read_newest(Topic.READINGS, 10**6))
            while len(log.read_newest(Topic.READINGS, 10**6)) < before + 50:
                pass
            mortal.kill()
            mortal.start()
        until.set()
        sent = {key: count.result() for key, count in zip(KEYS, counts, strict=True)}
        given = log.read(Topic.READINGS, "worker", 10**6)
        for key in KEYS:
            own = [int(one.value) for one in given if one.key == key]
            assert sorted(set(own)) == list(range(sent[key]))
            firsts = [number for place, number in enumerate(own) if number not in own[:place]]
            assert firsts == sorted(firsts)


def test_an_append_without_a_broker_is_refused_in_time_and_works_again_by_itself(
    mortal: Process, make: Make
) -> None:
    view = replace(make(), timeout_seconds=3.0)
    with closing(KafkaLog(view)) as log:
        log.append(Topic.READINGS, [Record("k", b"before")])
        assert len(log.read(Topic.READINGS, "worker", 10)) == 1
        mortal.kill()
        for call in (
            lambda: log.append(Topic.READINGS, [Record("k", b"while")]),
            lambda: log.append(Topic.READINGS, [Record("k", b"while")]),
            lambda: log.read(Topic.READINGS, "worker", 10),
            lambda: log.read(Topic.READINGS, "other", 10),
            lambda: log.read_newest(Topic.READINGS, 10),
        ):
            with pytest.raises(
                BrokerAway, match=r"no broker listens at .* start it, or correct bootstrap_servers"
            ):
                call()
        mortal.start()
        while True:
            try:
                log.append(Topic.READINGS, [Record("k", b"after")])
                break
            except BrokerAway:
                continue
        values: list[bytes] = []
        while b"after" not in values:
            try:
                values = [one.value for one in log.read(Topic.READINGS, "worker", 10)]
            except BrokerAway:
                continue
        assert values[0] == b"before"


def test_a_broker_that_stands_still_does_not_hold_up_who_appends(mortal: Process, make: Make) -> None:
    view = replace(make(), timeout_seconds=3.0)
    with closing(KafkaLog(view)) as log:
        log.append(Topic.READINGS, [Record("k", b"before")])
        mortal.freeze(True)
        with pytest.raises(BrokerAway, match="does not answer within 3 s"):
            log.append(Topic.READINGS, [Record("k", b"while")])
        mortal.freeze(False)
        taken = False
        while not taken:
            try:
                log.append(Topic.READINGS, [Record("k", b"after")])
                taken = True
            except BrokerAway:
                continue
        assert {one.value for one in log.read_newest(Topic.READINGS, 10)} >= {b"before", b"after"}


WORKER = """
import sys
from predrain.data.log.kafka import Broker, KafkaLog
from predrain.data.log.log_port import Topic
log = KafkaLog(Broker((sys.argv[1],), prefix=sys.argv[2]))
while len(given := log.read(Topic.READINGS, "worker", 100)) < 4:
    pass
log.commit(Topic.READINGS, "worker", given[:2])
print("committed", flush=True)
sys.stdin.read()
"""


def test_a_reader_killed_between_read_and_commit_leaves_the_rest_to_another(
    broker: Process, make: Make
) -> None:
    view = make(partitions=1)
    with closing(KafkaLog(view)) as log:
        log.append(Topic.READINGS, [Record(key, key.encode()) for key in KEYS])
        command = [sys.executable, "-c", WORKER, *view.bootstrap, view.prefix]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"committed\n"
            process.kill()
        while len(given := log.read(Topic.READINGS, "worker", 100)) == 0:
            pass
        assert [one.value for one in given] == [b"c", b"d"]


def test_more_than_may_be_on_its_way_at_once_is_taken_in_pieces(make: Make) -> None:
    with closing(KafkaLog(make(partitions=2))) as log:
        big = bytes(1 << 20)
        batch = [Record(str(number), str(number).encode() + big) for number in range(48)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: log.append(Topic.LATENCY, batch), range(2)))
        given = log.read(Topic.LATENCY, "worker", 1000)
        assert len(given) == 2 * len(batch)
        for partition in (0, 1):
            offsets = [one.offset for one in given if one.partition == partition]
            assert all(earlier < later for earlier, later in pairwise(offsets))
