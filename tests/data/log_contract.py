"""The contract of every log (data.log.log_port), as test classes.

The tests of each adapter inherit the classes and provide a fixture `log`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from predrain.data.log.log_port import Delivered, Log, Record, Topic


def records(*names: str) -> list[Record]:
    return [Record(name, name.encode()) for name in names]


def values(log: Log, group: str, limit: int = 100, topic: Topic = Topic.READINGS) -> list[str]:
    return [delivered.value.decode() for delivered in log.read(topic, group, limit)]


class LogContract:
    """Every log, where a topic has one partition."""

    def test_records_are_read_in_the_order_they_were_accepted(self, log: Log) -> None:
        log.append(Topic.READINGS, records("a", "b"))
        log.append(Topic.READINGS, records("c"))
        delivered = log.read(Topic.READINGS, "worker", 10)
        assert [(record.key, record.value) for record in delivered] == [("a", b"a"), ("b", b"b"), ("c", b"c")]
        assert [record.offset for record in delivered] == sorted({record.offset for record in delivered})

    def test_an_empty_topic_gives_nothing(self, log: Log) -> None:
        assert log.read(Topic.READINGS, "worker", 10) == ()
        log.append(Topic.READINGS, [])
        assert log.read(Topic.READINGS, "worker", 10) == ()

    def test_a_read_gives_no_more_than_its_limit_and_repeats_until_commit(self, log: Log) -> None:
        log.append(Topic.READINGS, records("a", "b", "c"))
        assert values(log, "worker", limit=2) == ["a", "b"]
        assert values(log, "worker", limit=2) == ["a", "b"]
        log.commit(Topic.READINGS, "worker", log.read(Topic.READINGS, "worker", 2))
        assert values(log, "worker", limit=2) == ["c"]
        assert values(log, "worker", limit=0) == []

    def test_a_commit_never_moves_a_group_back(self, log: Log) -> None:
        log.append(Topic.READINGS, records("a", "b", "c"))
        first, second, _ = log.read(Topic.READINGS, "worker", 10)
        log.commit(Topic.READINGS, "worker", [second])
        log.commit(Topic.READINGS, "worker", [first])
        assert values(log, "worker") == ["c"]

    def test_a_commit_beyond_the_end_loses_nothing_that_comes_later(self, log: Log) -> None:
        log.append(Topic.READINGS, records("a"))
        log.commit(Topic.READINGS, "worker", [Delivered(10**9, "", b"")])
        log.append(Topic.READINGS, records("b"))
        assert values(log, "worker") == ["b"]

    def test_groups_and_topics_do_not_see_each_others_offsets(self, log: Log) -> None:
        log.append(Topic.READINGS, records("a"))
        log.append(Topic.LATENCY, records("l"))
        log.append(Topic.READINGS, records("b"))
        log.commit(Topic.READINGS, "worker", log.read(Topic.READINGS, "worker", 10))
        assert values(log, "worker") == []
        assert values(log, "archive") == ["a", "b"]
        assert values(log, "worker", topic=Topic.LATENCY) == ["l"]

    def test_a_group_that_starts_late_begins_at_the_oldest_record(self, log: Log) -> None:
        log.append(Topic.READINGS, records("a", "b"))
        assert values(log, "late") == ["a", "b"]

    def test_any_key_and_any_bytes_come_back_as_they_were(self, log: Log) -> None:
        record = Record(
            "Samsung_SSD_\N{GREEK SMALL LETTER MU}\x00'; DROP TABLE records; --", bytes(range(256))
        )
        log.append(Topic.DEAD_LETTERS, [record])
        (delivered,) = log.read(Topic.DEAD_LETTERS, "worker", 1)
        assert (delivered.key, delivered.value) == (record.key, record.value)

    def test_a_batch_that_fails_half_way_leaves_nothing_behind(self, log: Log) -> None:
        def broken() -> list[Record]:
            return [Record("a", b"a"), None]  # type: ignore[list-item]

        with pytest.raises(AttributeError):
            log.append(Topic.READINGS, broken())
        log.append(Topic.READINGS, records("b"))
        assert values(log, "worker") == ["b"]

    def test_threads_may_append_at_once_and_each_batch_stays_together(self, log: Log) -> None:
        def write(name: str) -> None:
            for batch in range(10):
                log.append(Topic.READINGS, records(*(f"{name}.{batch}.{i}" for i in range(5))))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, "wxyz"))
        given = values(log, "worker", limit=1000)
        assert len(given) == 200
        for start in range(0, 200, 5):
            name, batch, _ = given[start].split(".")
            assert given[start : start + 5] == [f"{name}.{batch}.{i}" for i in range(5)]
        for name in "wxyz":
            own = [value for value in given if value.startswith(name)]
            assert own == [f"{name}.{batch}.{i}" for batch in range(10) for i in range(5)]


class TrimContract:
    """The contract of logs that drop records when `trim` is called."""

    def test_trimming_keeps_what_a_group_has_not_committed(self, log: Log) -> None:
        log.append(Topic.READINGS, records("a", "b", "c", "d"))
        delivered = log.read(Topic.READINGS, "slow", 10)
        log.commit(Topic.READINGS, "fast", delivered)
        log.commit(Topic.READINGS, "slow", delivered[:2])
        assert log.trim(Topic.READINGS, delivered[3].offset + 1) == 2
        assert values(log, "slow") == ["c", "d"]
        assert values(log, "late") == ["c", "d"]

    def test_trimming_keeps_everything_from_the_given_offset_on(self, log: Log) -> None:
        log.append(Topic.READINGS, records("a", "b", "c"))
        delivered = log.read(Topic.READINGS, "worker", 10)
        log.commit(Topic.READINGS, "worker", delivered)
        assert log.trim(Topic.READINGS, delivered[2].offset) == 2
        assert values(log, "late") == ["c"]

    def test_trimming_drops_nothing_before_anybody_has_read(self, log: Log) -> None:
        log.append(Topic.READINGS, records("a"))
        assert log.trim(Topic.READINGS, 10**9) == 0
        assert log.read(Topic.READINGS, "worker", 10) != ()

    def test_a_group_that_has_read_but_not_committed_is_safe_from_trimming(self, log: Log) -> None:
        assert log.read(Topic.READINGS, "slow", 10) == ()
        log.append(Topic.READINGS, records("a"))
        log.commit(Topic.READINGS, "fast", [Delivered(10**9, "", b"")])
        assert log.trim(Topic.READINGS, 10**9) == 0
        assert values(log, "slow") == ["a"]

    def test_an_offset_is_never_given_twice_even_after_trimming(self, log: Log) -> None:
        log.append(Topic.READINGS, records("a", "b"))
        done = log.read(Topic.READINGS, "worker", 10)
        log.commit(Topic.READINGS, "worker", done)
        assert log.trim(Topic.READINGS, done[-1].offset + 1) == 2
        log.append(Topic.READINGS, records("c"))
        (after,) = log.read(Topic.READINGS, "worker", 10)
        assert after.offset > done[-1].offset
