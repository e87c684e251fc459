"""What every log promises (data.log.port), held by one suite over all adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from data.log.memory import MemoryLog
from data.log.port import Log, LogFull, Record, Topic
from data.log.sqlite import SqliteLog
from data.refusal import Refusal


@pytest.fixture(params=["memory", "sqlite"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    makers: dict[str, Callable[[], Log]] = {
        "memory": MemoryLog,
        "sqlite": lambda: SqliteLog(tmp_path / "log.db"),
    }
    log = makers[request.param]()
    yield log
    log.close()


def _records(*names: str) -> list[Record]:
    return [Record(name, name.encode()) for name in names]


def _values(log: Log, group: str, limit: int = 100, topic: Topic = Topic.READINGS) -> list[str]:
    return [delivered.value.decode() for delivered in log.read(topic, group, limit)]


def test_records_are_read_in_the_order_they_were_accepted(log: Log) -> None:
    log.append(Topic.READINGS, _records("a", "b"))
    log.append(Topic.READINGS, _records("c"))
    delivered = log.read(Topic.READINGS, "worker", 10)
    assert [(record.key, record.value) for record in delivered] == [("a", b"a"), ("b", b"b"), ("c", b"c")]
    assert [record.offset for record in delivered] == sorted({record.offset for record in delivered})


def test_an_empty_topic_gives_nothing(log: Log) -> None:
    assert log.read(Topic.READINGS, "worker", 10) == ()
    log.append(Topic.READINGS, [])
    assert log.read(Topic.READINGS, "worker", 10) == ()


def test_a_read_gives_no_more_than_its_limit_and_repeats_until_commit(log: Log) -> None:
    log.append(Topic.READINGS, _records("a", "b", "c"))
    assert _values(log, "worker", limit=2) == ["a", "b"]
    assert _values(log, "worker", limit=2) == ["a", "b"]
    log.commit(Topic.READINGS, "worker", log.read(Topic.READINGS, "worker", 2)[-1].offset)
    assert _values(log, "worker", limit=2) == ["c"]
    assert _values(log, "worker", limit=0) == []


def test_a_commit_never_moves_a_group_back(log: Log) -> None:
    log.append(Topic.READINGS, _records("a", "b", "c"))
    first, second, _ = log.read(Topic.READINGS, "worker", 10)
    log.commit(Topic.READINGS, "worker", second.offset)
    log.commit(Topic.READINGS, "worker", first.offset)
    assert _values(log, "worker") == ["c"]


def test_a_commit_beyond_the_end_loses_nothing_that_comes_later(log: Log) -> None:
    log.append(Topic.READINGS, _records("a"))
    log.commit(Topic.READINGS, "worker", 10**9)
    log.append(Topic.READINGS, _records("b"))
    assert _values(log, "worker") == ["b"]


def test_groups_and_topics_do_not_see_each_others_offsets(log: Log) -> None:
    log.append(Topic.READINGS, _records("a"))
    log.append(Topic.LATENCY, _records("l"))
    log.append(Topic.READINGS, _records("b"))
    log.commit(Topic.READINGS, "worker", log.read(Topic.READINGS, "worker", 10)[-1].offset)
    assert _values(log, "worker") == []
    assert _values(log, "archive") == ["a", "b"]
    assert _values(log, "worker", topic=Topic.LATENCY) == ["l"]


def test_a_group_that_starts_late_begins_at_the_oldest_record(log: Log) -> None:
    log.append(Topic.READINGS, _records("a", "b"))
    assert _values(log, "late") == ["a", "b"]


def test_any_key_and_any_bytes_come_back_as_they_were(log: Log) -> None:
    record = Record("Samsung_SSD_\N{GREEK SMALL LETTER MU}\x00'; DROP TABLE records; --", bytes(range(256)))
    log.append(Topic.DEAD_LETTERS, [record])
    (delivered,) = log.read(Topic.DEAD_LETTERS, "worker", 1)
    assert (delivered.key, delivered.value) == (record.key, record.value)


def test_trimming_keeps_what_a_group_has_not_committed(log: Log) -> None:
    log.append(Topic.READINGS, _records("a", "b", "c", "d"))
    offsets = [delivered.offset for delivered in log.read(Topic.READINGS, "slow", 10)]
    log.commit(Topic.READINGS, "fast", offsets[3])
    log.commit(Topic.READINGS, "slow", offsets[1])
    assert log.trim(Topic.READINGS, offsets[3] + 1) == 2
    assert _values(log, "slow") == ["c", "d"]
    assert _values(log, "late") == ["c", "d"]


def test_trimming_keeps_everything_from_the_given_offset_on(log: Log) -> None:
    log.append(Topic.READINGS, _records("a", "b", "c"))
    offsets = [delivered.offset for delivered in log.read(Topic.READINGS, "worker", 10)]
    log.commit(Topic.READINGS, "worker", offsets[2])
    assert log.trim(Topic.READINGS, offsets[2]) == 2
    assert _values(log, "late") == ["c"]


def test_trimming_drops_nothing_before_anybody_has_read(log: Log) -> None:
    log.append(Topic.READINGS, _records("a"))
    assert log.trim(Topic.READINGS, 10**9) == 0
    assert log.read(Topic.READINGS, "worker", 10) != ()


def test_a_group_that_has_read_but_not_committed_is_safe_from_trimming(log: Log) -> None:
    assert log.read(Topic.READINGS, "slow", 10) == ()
    log.append(Topic.READINGS, _records("a"))
    log.commit(Topic.READINGS, "fast", 10**9)
    assert log.trim(Topic.READINGS, 10**9) == 0
    assert _values(log, "slow") == ["a"]


def test_an_offset_is_never_given_twice_even_after_trimming(log: Log) -> None:
    log.append(Topic.READINGS, _records("a", "b"))
    last = log.read(Topic.READINGS, "worker", 10)[-1].offset
    log.commit(Topic.READINGS, "worker", last)
    assert log.trim(Topic.READINGS, last + 1) == 2
    log.append(Topic.READINGS, _records("c"))
    (after,) = log.read(Topic.READINGS, "worker", 10)
    assert after.offset > last


def test_a_batch_that_fails_half_way_leaves_nothing_behind(log: Log) -> None:
    def broken() -> list[Record]:
        return [Record("a", b"a"), None]  # type: ignore[list-item]

    with pytest.raises(AttributeError):
        log.append(Topic.READINGS, broken())
    log.append(Topic.READINGS, _records("b"))
    assert _values(log, "worker") == ["b"]


def test_threads_may_append_at_once_and_each_batch_stays_together(log: Log) -> None:
    def write(name: str) -> None:
        for batch in range(10):
            log.append(Topic.READINGS, _records(*(f"{name}.{batch}.{i}" for i in range(5))))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "wxyz"))
    values = _values(log, "worker", limit=1000)
    assert len(values) == 200
    for start in range(0, 200, 5):
        name, batch, _ = values[start].split(".")
        assert values[start : start + 5] == [f"{name}.{batch}.{i}" for i in range(5)]
    for name in "wxyz":
        own = [value for value in values if value.startswith(name)]
        assert own == [f"{name}.{batch}.{i}" for batch in range(10) for i in range(5)]


def test_a_full_memory_log_refuses_with_the_cure_and_works_again_after_trimming() -> None:
    log = MemoryLog(max_bytes=100)
    log.append(Topic.READINGS, [Record("k", b"x" * 79)])
    with pytest.raises(LogFull, match="80 of at most 100 bytes") as refused:
        log.append(Topic.READINGS, [Record("k", b"y" * 10), Record("k", b"z" * 20)])
    assert isinstance(refused.value, Refusal)
    (delivered,) = log.read(Topic.READINGS, "worker", 10)
    log.commit(Topic.READINGS, "worker", delivered.offset)
    assert log.trim(Topic.READINGS, delivered.offset + 1) == 1
    log.append(Topic.READINGS, [Record("k", b"z" * 99)])
