"""What the page shows when things are large, old, away or off: nothing is cut, silent or told otherwise elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.system.browsing import DESK, Opened, chromium, settled

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def desk(browser: Browser, base_url: str) -> Iterator[Opened]:
    context = browser.new_context(viewport=DESK)
    yield Opened(context, base_url)
    context.close()


def test_the_frame_stands_before_the_service_has_answered(desk: Opened) -> None:
    waiting: list[Route] = []
    desk.page.route("**/api/v1/**", lambda route: waiting.append(route))
    page = desk.go("/fleet")
    expect(page.get_by_role("navigation").first).to_contain_text("Drains")
    assert len(waiting) == 1, "who is in is asked first, and nothing else before that is known"
    page.unroute("**/api/v1/**")  # what waits goes on
    settled(page)
