"""Readings that come twice, and drives that are taken over: how much of the store they make a worker read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from predrain.data.log.memory_log import MemoryLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.forecasting.bundle_choice import BundledForecaster
from tests.service.conftest import NOON, smart_reading
from tests.service.partitioned_log import Member, Partitions
from tests.service.test_shared_worker import put, stored, worker_on

SERIALS = [f"Z{n}" for n in range(40)]
DAY = timedelta(days=1)


def day(ago: int) -> list:
    return [smart_reading(serial, NOON - ago * DAY) for serial in SERIALS]


@pytest.fixture
def questions() -> Iterator[Callable[[], list[str]]]:
    """The SELECTs on histories since the last call."""
    asked: list[str] = []

    def note(_connection, _cursor, statement: str, *_rest) -> None:
        if statement.startswith("SELECT") and (
            "FROM readings" in statement or "FROM outlooks" in statement or "JOIN readings" in statement
        ):
            asked.append(statement)

    def take() -> list[str]:
        taken = [*asked]
        asked.clear()
        return taken

    event.listen(Engine, "before_cursor_execute", note)
    yield take
    event.remove(Engine, "before_cursor_execute", note)


def test_a_batch_that_comes_twice_is_found_by_one_question_and_changes_nothing(
    tmp_path: Path, forecaster: BundledForecaster, questions: Callable[[], list[str]]
) -> None:
    log, store = MemoryLog(), SqliteStore(tmp_path / "store.db")
    worker = worker_on(log, store, forecaster)
    worker.rebuild()
    put(log, [*day(1), *day(0)])
    worker.step()
    before = stored(store)
    questions()
    put(log, [*day(1), *day(0)])
    again = worker.step()
    assert (again.taken, again.outlooks) == (80, 0)
    assert len(questions()) == 1
    assert stored(store) == before
    store.close()


def test_a_reading_twice_in_one_batch_is_scored_once_without_a_look_into_the_past(
    tmp_path: Path, forecaster: BundledForecaster, questions: Callable[[], list[str]]
) -> None:
    log, store = MemoryLog(), SqliteStore(tmp_path / "store.db")
    worker = worker_on(log, store, forecaster)
    worker.rebuild()
    put(log, day(1))
    worker.step()
    questions()
    put(log, [*day(0), *day(0)])
    assert worker.step().outlooks == len(SERIALS)
    assert questions() == []
    store.close()


def test_a_reading_whose_outlook_was_lost_is_scored_when_it_comes_again(
    tmp_path: Path, forecaster: BundledForecaster
) -> None:
    log, store = MemoryLog(), SqliteStore(tmp_path / "store.db")
    store.add_readings(day(0))  # by a process that was killed before it had scored them
    worker = worker_on(log, store, forecaster)
    worker.rebuild()
    put(log, day(0))
    assert worker.step().outlooks == len(SERIALS)
    assert len(store.latest_outlooks()) == len(SERIALS)
    store.close()


def test_a_worker_that_takes_drives_over_asks_for_all_of_them_at_once(
    tmp_path: Path, forecaster: BundledForecaster, questions: Callable[[], list[str]]
) -> None:
    parts, store = Partitions(1), SqliteStore(tmp_path / "store.db")
    first, second = (worker_on(Member(parts, number), store, forecaster, bare=True) for number in range(2))
    parts.give({0: 0})
    put(Member(parts, 0), [*day(2), *day(1)])
    first.step()
    parts.give({0: 1})
    put(Member(parts, 0), day(0))
    questions()
    assert second.step().outlooks == len(SERIALS)
    assert len(questions()) == 1
    alone = worker_on(MemoryLog(), store, forecaster)
    alone.rebuild()
    told, wanted = ({d: forecaster.pack(s) for d, s in one.states().items()} for one in (second, alone))
    assert told == wanted
    store.close()


def test_a_start_without_checkpoints_asks_for_many_drives_at_once(
    tmp_path: Path, forecaster: BundledForecaster, questions: Callable[[], list[str]]
) -> None:
    store = SqliteStore(tmp_path / "store.db")
    store.add_readings([*day(2), *day(1)])
    worker = worker_on(MemoryLog(), store, forecaster)
    questions()
    assert worker.rebuild() == len(SERIALS)
    assert len(questions()) == 1
    store.close()
