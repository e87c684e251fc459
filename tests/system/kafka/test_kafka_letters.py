"""Dead letters over a real broker: everybody sees all of them, and who was sent again stays so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from kafka import KafkaAdminClient

from predrain.data.log.kafka import Broker, KafkaLog
from predrain.data.log.log_port import Delivered, Record, Topic
from predrain.data.wire import DeadLetter, encode_envelope
from predrain.service.streams.dead_letters import REPLAYING, list_dead_letters, replay_dead_letters
from tests.system.kafka.conftest import Make

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
LETTERS = 40


@pytest.fixture
def shared(make: Make) -> Broker:
    """Return a broker with topics of two partitions, as an operator may have made them."""
    return make(partitions=2)


@pytest.fixture
def log(shared: Broker) -> Iterator[KafkaLog]:
    with closing(KafkaLog(shared)) as log:
        yield log


def letter(number: int, value: bytes = b"no reading") -> Record:
    key = f"drive-{number}"
    made = DeadLetter.from_delivered(
        Topic.READINGS, Delivered(number, key, value), ValueError("no envelope"), NOON
    )
    return Record(key, encode_envelope(made, producer="worker", sequence=number, sent_at=NOON))


def keys(log: KafkaLog) -> list[str]:
    return sorted(one.key for one in list_dead_letters(log).letters)


def forget_groups(shared: Broker) -> None:
    """Delete our groups, as brokers do by themselves when `offsets.retention.minutes` are over."""
    admin: Any = KafkaAdminClient(**shared.build_client_options())
    with closing(admin):
        ours = [one["group_id"] for one in admin.list_groups() if one["group_id"].startswith(shared.prefix)]
        if ours:
            admin.delete_groups(ours)


def test_letters_that_were_sent_again_do_not_come_up_anew_once_brokers_forget_groups(shared: Broker) -> None:
    with closing(KafkaLog(shared)) as log:
        log.append(Topic.DEAD_LETTERS, [letter(number) for number in range(LETTERS)])
        assert replay_dead_letters(log).sent == LETTERS
        assert len(log.read_newest(Topic.READINGS, 1_000)) == LETTERS
    forget_groups(shared)
    with closing(KafkaLog(shared)) as log:
        assert keys(log) == []
        log.append(Topic.DEAD_LETTERS, [letter(LETTERS)])
        assert keys(log) == [f"drive-{LETTERS}"]


def test_two_clients_that_list_the_dead_letters_at_once_both_see_all_of_them(
    shared: Broker, log: KafkaLog
) -> None:
    log.append(Topic.DEAD_LETTERS, [letter(number) for number in range(LETTERS)])
    with closing(KafkaLog(shared)) as other:
        assert len(keys(log)) == LETTERS
        assert keys(other) == keys(log)


def test_two_replays_at_once_leave_no_letter_and_lose_none_that_came_meanwhile(
    shared: Broker, log: KafkaLog
) -> None:
    log.append(Topic.DEAD_LETTERS, [letter(number) for number in range(LETTERS)])
    seen = log.read(Topic.DEAD_LETTERS, REPLAYING, 1_000)
    with closing(KafkaLog(shared)) as other:
        assert replay_dead_letters(other).sent == LETTERS
        other.append(Topic.DEAD_LETTERS, [letter(LETTERS)])
    log.commit(Topic.DEAD_LETTERS, REPLAYING, seen)
    assert keys(log) == [f"drive-{LETTERS}"]


def test_more_letters_than_are_read_at_once_are_all_sent_again(
    shared: Broker, log: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("predrain.service.streams.dead_letters.BATCH", 7)
    log.append(Topic.DEAD_LETTERS, [letter(number) for number in range(LETTERS)])
    assert replay_dead_letters(log).sent == LETTERS
    assert keys(log) == []
