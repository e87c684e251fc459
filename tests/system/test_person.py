"""A person meets a dying disk in the browser: finds it on the first page, reads why, approves its drain, watches,
pauses, resumes, cancels, and signs out. The documentation's pictures come from this run (`PREDRAIN_SCREENSHOTS=DIR`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.system.browsing import DESK, PHONE, Opened, chromium, picture, settled, violations
from tests.system.conftest import Demo, demo

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo that asks before it drains, slow enough to be met under way."""
    folder = tmp_path_factory.mktemp("waiting")
    with demo(
        folder, "--mode", "propose", "--from", "2018-01-24", "--speed", "24", "--days", "60"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def person(waiting: Demo) -> Iterator[Opened]:
    with chromium() as browser:
        context = browser.new_context(viewport=DESK, reduced_motion="reduce")
        yield Opened(context, waiting.url)
        context.close()


def seen_by_all(page: Page) -> list[tuple[str, str, list[str]]]:
    """Return what axe finds in this view, in light and dark, on a desk and on a phone."""
    found = []
    for scheme, size in (("dark", PHONE), ("light", PHONE), ("dark", DESK), ("light", DESK)):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.set_viewport_size(size)
        found += violations(page)
    return found


@pytest.mark.core
def test_a_person_finds_the_worst_disk_and_drains_it_from_the_page(waiting: Demo, person: Opened) -> None:
    proposed = waiting.until(
        lambda: [drain for drain in waiting.get("drains")["items"] if drain["state"] == "proposed"],
        240,
        "a proposed drain",
    )[0]
    where = f"drains/{proposed['id']}"
    osd = f"osd.{proposed['osds'][0]}"

    def state() -> str:
        return str(waiting.get(where)["state"])

    page = settled(person.go("/", waiting.token))
    expect(page.locator("h1")).to_have_text(re.compile("need"))
    first = page.locator(".needs-table tbody tr").first
    expect(first.locator(".disk")).to_contain_text(osd)
    picture(page, "fleet")
    first.locator(".disk a").click()

    expect(page.locator("h1")).to_contain_text(f"{osd}:")
    expect(page.locator(".reasons li").first).to_be_visible()
    # Each reason against the disk is marked on the chart at the instant that shows it.
    expect(page.locator(".lanes .mark").first).to_be_visible()
    found = seen_by_all(settled(page))
    picture(page, "device")
    page.get_by_role("link", name="Review drain").click()

    expect(page.get_by_text("If you do nothing")).to_be_visible()
    found += seen_by_all(settled(page))
    picture(page, "drain")
    assert state() == "proposed", "nothing moves before a person's word"
    page.get_by_role("button", name=re.compile(f"^Approve: move .* off {re.escape(osd)}$")).click()
    waiting.until(lambda: waiting.get(where)["progress"]["moved_pgs"] > 0, 120, "the first PG moved")
    page.get_by_role("button", name="Pause").click()
    waiting.until(lambda: state() == "paused", 60, "the pause")

    expect(page.locator("h1")).to_contain_text("paused at")
    expect(page.get_by_text("PGs in flight").first).to_be_visible()
    found += seen_by_all(settled(page))
    picture(page, "draining")
    page.get_by_role("button", name="Resume").click()
    question = page.get_by_role("dialog")
    expect(
        question.get_by_role("button", name=re.compile(r"^Resume: move the other [\d.]+ "))
    ).to_be_visible()
    found += violations(page)
    question.get_by_role("button", name=re.compile("^Resume: ")).click()
    waiting.until(lambda: state() in ("draining", "holding"), 60, "the drain going on")

    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile(r"^Cancel: put [\d.]+ .* back$")).click()
    waiting.until(lambda: state() == "cancelled", 180, "everything put back")
    journal = waiting.get(f"{where}/journal")["items"]
    assert [line["decision"] for line in journal if line["caller"] == "demo"] == [
        "approve",
        "pause",
        "resume",
        "cancel",
    ]
    known = next(one for one in waiting.get("osds")["items"] if f"osd.{one['osd']}" == osd)
    assert known["reweight"] == 1.0

    page.goto(f"{waiting.url}/drains")
    halt = page.get_by_role("button", name="Halt all drains")
    expect(halt).not_to_have_attribute("aria-disabled", "true")
    sign_out(page)
    expect(halt).to_have_attribute("aria-disabled", "true")
    page.reload()
    expect(halt).to_have_attribute("aria-disabled", "true")
    assert found == []
    assert person.complaints == []


def sign_out(page: Page) -> None:
    """Leave no right to act behind in this browser."""
    page.locator(".header .scope").click()
    page.get_by_role("dialog").get_by_role("button", name="Sign out").click()
