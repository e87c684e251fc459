"""A request with a key, sent to two processes that share a store: one carries it out, both answer alike."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from predrain.actions.core.drain_policy import Policy
from predrain.data.log.memory_log import MemoryLog
from predrain.data.store.postgres_store import PostgresStore
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.config.settings import ServiceTable, Settings
from predrain.service.rest.idempotency import RepeatedRequests
from predrain.service.rest.problem_answers import HttpProblem
from tests.service.conftest import SetClock

pytestmark = pytest.mark.system


@pytest.fixture
def processes(url: str, tmp_path: Path) -> Iterator[tuple[RepeatedRequests, RepeatedRequests]]:
    """Yield the records of answered requests that two services with one store keep."""

    def no_forecaster() -> Any:
        raise AssertionError("nothing is scored here")

    stores = [PostgresStore(url) for _ in range(2)]
    settings = Settings(service=ServiceTable(state=tmp_path))
    first, second = (
        RepeatedRequests(
            Application(ApplicationPorts(MemoryLog(), store, SetClock(), no_forecaster), Policy(), settings)
        )
        for store in stores
    )
    yield first, second
    for store in stores:
        store.close()


def test_the_other_process_waits_and_then_answers_alike(
    processes: tuple[RepeatedRequests, RepeatedRequests],
) -> None:
    first, second = processes
    begun, go_on, told = threading.Event(), threading.Event(), []

    def slowly() -> tuple[int, str]:
        begun.set()
        assert go_on.wait(60)
        return 201, '{"id":"a"}'

    def never() -> tuple[int, str]:
        raise AssertionError("it is carried out twice")

    thread = threading.Thread(target=lambda: told.append(first.carry_out_once("key", "what", slowly)))
    thread.start()
    assert begun.wait(60)
    with pytest.raises(HttpProblem) as refused:
        second.carry_out_once("key", "what", never)
    assert refused.value.status == 409
    go_on.set()
    thread.join(60)
    assert second.carry_out_once("key", "what", never) == told[0] == (201, '{"id":"a"}')
    for each in (second, first) * 50:
        with pytest.raises(HttpProblem) as other:
            each.carry_out_once("key", "something else", never)
        assert other.value.status == 422, "nobody carries it out any more"
