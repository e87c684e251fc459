"""Looking back at a topic without being one of its groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from predrain.data.log.log_port import Log, Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.log.sqlite_log import SqliteLog


@pytest.fixture(params=["memory", "sqlite"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    made: Log = MemoryLog() if request.param == "memory" else SqliteLog(tmp_path / "log.db")
    yield made
    made.close()


def test_the_newest_records_come_oldest_first_whatever_was_committed(log: Log) -> None:
    log.append(Topic.OUTLOOKS, [Record("k", name.encode()) for name in "abcd"])
    log.append(Topic.READINGS, [Record("k", b"other")])
    log.commit(Topic.OUTLOOKS, "worker", log.read(Topic.OUTLOOKS, "worker", 10))
    assert [one.value for one in log.read_newest(Topic.OUTLOOKS, 3)] == [b"b", b"c", b"d"]
    assert len(log.read_newest(Topic.OUTLOOKS, 100)) == 4
    assert log.read_newest(Topic.OUTLOOKS, 0) == log.read_newest(Topic.ACTIONS, 5) == ()


def test_looking_back_keeps_nothing_from_being_trimmed(log: Log) -> None:
    log.append(Topic.OUTLOOKS, [Record("k", b"a")])
    log.read_newest(Topic.OUTLOOKS, 10)
    (taken,) = log.read(Topic.OUTLOOKS, "worker", 10)
    log.commit(Topic.OUTLOOKS, "worker", [taken])
    assert log.trim(Topic.OUTLOOKS, taken.offset + 1) == 1
