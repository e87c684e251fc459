"""The logs of one machine keep what every log promises; the one in memory has an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from predrain.data.log.log_port import Log, LogFull, Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.refusal import Refusal
from tests.data.log_contract import LogContract, TrimContract


@pytest.fixture(params=["memory", "sqlite"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    makers: dict[str, Callable[[], Log]] = {
        "memory": MemoryLog,
        "sqlite": lambda: SqliteLog(tmp_path / "log.db"),
    }
    log = makers[request.param]()
    yield log
    log.close()


class TestLogsOfOneMachine(LogContract, TrimContract):
    """The logs in memory and in a file, which keep the contract of every log."""


def test_a_full_memory_log_refuses_with_the_cure_and_works_again_after_trimming() -> None:
    log = MemoryLog(max_bytes=100)
    log.append(Topic.READINGS, [Record("k", b"x" * 79)])
    with pytest.raises(LogFull, match="80 of at most 100 bytes") as refused:
        log.append(Topic.READINGS, [Record("k", b"y" * 10), Record("k", b"z" * 20)])
    assert isinstance(refused.value, Refusal)
    (delivered,) = log.read(Topic.READINGS, "worker", 10)
    log.commit(Topic.READINGS, "worker", [delivered])
    assert log.trim(Topic.READINGS, delivered.offset + 1) == 1
    log.append(Topic.READINGS, [Record("k", b"z" * 99)])
