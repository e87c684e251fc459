"""A person meets a drain in the browser: finds it proposed, approves, pauses, resumes and cancels it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.system.conftest import Demo, demo

CHROMIUM = Path("/usr/bin/chromium")

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo that asks before it drains, slow enough to be met under way."""
    folder = tmp_path_factory.mktemp("waiting")
    with demo(
        folder, "--mode", "propose", "--from", "2018-01-24", "--speed", "12", "--days", "60"
    ) as running:
        yield running


@pytest.fixture
def page(waiting: Demo) -> Iterator[Page]:
    if not CHROMIUM.exists():
        if os.environ.get("CI") == "true":
            pytest.fail("no /usr/bin/chromium; apt-get install chromium")
        pytest.skip("no /usr/bin/chromium; apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1280, "height": 900})
        opened.set_default_timeout(20_000)
        yield opened
        browser.close()


def test_a_person_approves_pauses_resumes_and_cancels_a_drain_from_the_page(
    waiting: Demo, page: Page
) -> None:
    proposed = waiting.until(
        lambda: [drain for drain in waiting.get("drains")["items"] if drain["state"] == "proposed"],
        120,
        "a proposed drain",
    )[0]

    def state() -> str:
        return str(waiting.get(f"drains/{proposed['id']}")["state"])

    page.goto(f"{waiting.url}/drains/{proposed['id']}#token={waiting.token}")
    expect(page.get_by_text("If you do nothing")).to_be_visible()
    assert state() == "proposed", "nothing moves before a person's word"
    page.get_by_role("button", name=re.compile("^Approve")).click()
    waiting.until(lambda: state() in ("preparing", "draining", "holding"), 60, "a drain under way")
    waiting.until(
        lambda: waiting.get(f"drains/{proposed['id']}")["progress"]["moved_pgs"] > 0, 60, "the first PG moved"
    )

    page.get_by_role("button", name="Pause").click()
    waiting.until(lambda: state() == "paused", 20, "the pause")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile("^Resume")).click()
    waiting.until(lambda: state() in ("draining", "holding"), 30, "the drain going on")

    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile("^Cancel: ")).click()
    waiting.until(lambda: state() in ("cancelling", "cancelled"), 30, "the cancel")
    waiting.until(lambda: state() == "cancelled", 90, "everything put back")
    journal = waiting.get(f"drains/{proposed['id']}/journal")["items"]
    asked = [line["decided"] for line in journal if line["caller"] == "demo"]
    assert asked == ["approve", "pause", "resume", "cancel"]
    osd = next(one for one in waiting.get("osds")["items"] if one["osd"] == proposed["osds"][0])
    assert osd["reweight"] == 1.0
