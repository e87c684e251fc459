"""The order in which the loops of a service begin."""

from __future__ import annotations

import threading

import pytest

from predrain.service.app import scheduler
from predrain.service.app.application import Application
from predrain.service.app.roles import SERVING
from predrain.service.storage.page_check import PageCheck
from tests.service.conftest import Place, shut


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Whether the first turn of the disk lives has begun, and that of the page check."""
    lives, pages = threading.Event(), threading.Event()
    monkeypatch.setattr(scheduler, "keep_lives", lambda _: lives.set())
    monkeypatch.setattr(PageCheck, "run", lambda _: pages.set())
    return lives, pages


def hold_start(application: Application, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let the start of scoring wait for the returned event."""
    may_start, start = threading.Event(), application.start

    def wait_and_start() -> None:
        may_start.wait(60.0)
        start()

    monkeypatch.setattr(application, "start", wait_and_start)
    return may_start


def test_the_first_scores_come_before_disk_lives_and_the_page_check(
    place: Place, begun: tuple[threading.Event, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    application = place.application()
    may_start = hold_start(application, monkeypatch)
    application.run()
    assert not begun[0].wait(0.3)
    assert not begun[1].is_set()
    may_start.set()
    assert all(each.wait(60.0) for each in begun)
    assert application.ready
    shut(application)


def test_disk_lives_and_the_page_check_do_not_wait_long_for_a_start_that_does_not_end(
    place: Place, begun: tuple[threading.Event, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "SCORING_FIRST_SECONDS", 0.1)
    application = place.application()
    may_start = hold_start(application, monkeypatch)
    application.run()
    assert all(each.wait(60.0) for each in begun)
    assert not application.ready
    may_start.set()
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
