"""The work that handlers give to the module's one lasting thread, and the requests that they send to the service."""

from __future__ import annotations

import threading
import time

import pytest

from predrain.actions.ceph_mgr.predrain import request_queue
from predrain.actions.ceph_mgr.predrain.request_queue import QueuedRequest, RequestQueue, RequestQueueFull
from predrain.actions.ceph_mgr.predrain.serial_worker import SerialWorker, WorkNotDoneInTime
from tests.deadlines import idle_seconds


def test_the_work_of_all_handlers_is_done_in_one_thread_that_lasts() -> None:
    clerk = SerialWorker()
    seen: list[threading.Thread] = []
    for _ in range(3):
        handler = threading.Thread(
            target=lambda: clerk.have_done(lambda: seen.append(threading.current_thread()))
        )
        handler.start()
        handler.join()
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert seen[0].is_alive()


def test_a_handler_gets_the_trouble_and_the_next_one_is_served() -> None:
    clerk = SerialWorker()
    with pytest.raises(ZeroDivisionError):
        clerk.have_done(lambda: print(1 / 0))
    clerk.have_done(lambda: None)


def test_a_handler_does_not_wait_for_ever() -> None:
    release = threading.Event()
    clerk = SerialWorker()
    with pytest.raises(WorkNotDoneInTime, match="has not answered within 0 s"):
        clerk.have_done(lambda: release.wait(10) and None, seconds=0.05)
    release.set()
    clerk.have_done(lambda: None)


def test_a_request_waits_a_moment_for_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_queue, "PATIENCE_SECONDS", 0.05)
    queue = RequestQueue()
    errand = queue.submit_and_wait(QueuedRequest("GET", "plan"))
    assert (errand.answer, errand.trouble) == (None, "")
    taken = queue.take_next()
    assert taken is errand
    taken.finish({"a": 1})
    assert errand.answer == {"a": 1}
    assert queue.take_next() is None


def test_a_request_that_nobody_carried_for_a_minute_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_queue, "PATIENCE_SECONDS", 0.0)
    queue = RequestQueue()
    errand = queue.submit_and_wait(QueuedRequest("POST", "drains/x/approve", asked_at=time.monotonic() - 61))
    assert queue.take_next() is None
    assert "dropped; ask again" in errand.trouble


def test_no_more_than_a_few_requests_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_queue, "PATIENCE_SECONDS", 0.0)
    queue = RequestQueue()
    for _ in range(request_queue.WAITING_MAX):
        queue.submit_and_wait(QueuedRequest("GET", "plan"))
    with pytest.raises(RequestQueueFull):
        queue.submit_and_wait(QueuedRequest("GET", "plan"))


def test_a_request_that_arrives_ends_the_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = RequestQueue()
    threading.Timer(0.05, queue.wake).start()
    began = idle_seconds()
    queue.sleep(100)
    assert idle_seconds() - began < 50
