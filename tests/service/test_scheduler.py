"""The order in which the loops of a service begin."""

from __future__ import annotations

import threading
import time

import pytest

from predrain.service.app import scheduler
from predrain.service.app.application import Application
from predrain.service.app.roles import SERVING
from predrain.service.forecasting.worker_step_result import WorkerStepResult
from predrain.service.storage.page_check import PageCheck
from tests.deadlines import idle_seconds
from tests.service.conftest import Place, shut


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Whether the first turn of the disk lives has begun, and that of the page check."""
    lives, pages = threading.Event(), threading.Event()
    monkeypatch.setattr(scheduler, "keep_lives", lambda _: lives.set())
    monkeypatch.setattr(PageCheck, "run", lambda _: pages.set())
    return lives, pages


def hold_first_step(application: Application, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let the steps of scoring wait for the returned event."""
    may_step, step = threading.Event(), application.step_worker

    def wait_and_step() -> WorkerStepResult:
        may_step.wait(60.0)
        return step()

    monkeypatch.setattr(application, "step_worker", wait_and_step)
    return may_step


def test_the_first_scores_come_before_disk_lives_and_the_page_check(
    place: Place, begun: tuple[threading.Event, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    application = place.application()
    may_step = hold_first_step(application, monkeypatch)
    application.run()
    end = idle_seconds() + 60
    while not application.ready and idle_seconds() < end:
        time.sleep(0.02)
    assert application.ready
    assert not begun[0].wait(0.3)
    assert not begun[1].is_set()
    may_step.set()
    assert all(each.wait(60.0) for each in begun)
    shut(application)


def test_disk_lives_and_the_page_check_do_not_wait_long_for_scores_that_do_not_come(
    place: Place, begun: tuple[threading.Event, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "SCORING_FIRST_SECONDS", 0.1)
    application = place.application()
    may_step = hold_first_step(application, monkeypatch)
    application.run()
    assert all(each.wait(60.0) for each in begun)
    may_step.set()
    shut(application)


def test_a_service_that_does_not_score_begins_with_disk_lives_at_once(
    place: Place, begun: tuple[threading.Event, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "SCORING_FIRST_SECONDS", 600.0)
    application = place.application()
    monkeypatch.setattr(application, "parts", SERVING)
    application.run()
    assert all(each.wait(60.0) for each in begun)
    shut(application)
