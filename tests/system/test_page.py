"""The page in a real browser over a running service: what a person sees, reaches by key, and can stop.

`base_url` is where the service answers, `token` what lets the page act; both are this folder's fixtures.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
PAGE = Path(__file__).parents[2] / "service" / "page"
AXE = PAGE / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = ("/fleet", "/fleet?table=1", "/drains", "/events", "/alerts", "/forecast")
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}

pytestmark = pytest.mark.system


def missing(what: str) -> None:
    """Fail where nothing may be missing, skip on a laptop."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        missing("no /usr/bin/chromium; apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page that remembers everything its console complained about."""

    def __init__(self, context: BrowserContext, base_url: str) -> None:
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self._base = base_url.split("#")[0].rstrip("/")
        self.page.on("console", lambda said: self._hear(said.type, said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def go(self, path: str, token: str | None = None) -> Page:
        self.page.goto(self._base + path + (f"#token={token}" if token else ""))
        expect(self.page.locator("h1")).to_be_visible()
        return self.page

    def api(self, path: str) -> Any:
        answer = self.page.request.get(f"{self._base}/api/v1/{path}")
        assert answer.ok, answer.text()
        return answer.json()


@pytest.fixture
def desk(browser: Browser, base_url: str) -> Iterator[Opened]:
    context = browser.new_context(viewport=DESK)
    context.set_default_timeout(15_000)
    yield Opened(context, base_url)
    context.close()


@pytest.fixture
def phone(browser: Browser, base_url: str) -> Iterator[Opened]:
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark")
    context.set_default_timeout(15_000)
    yield Opened(context, base_url)
    context.close()


def settled(page: Page) -> Page:
    """The stream is open and no grey bar is left."""
    expect(page.locator(".live.live")).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)
    return page


def a_disk(opened: Opened) -> dict[str, Any]:
    osds = opened.api("osds")["items"]
    return next(osd for osd in osds if osd["device"] is not None)


def test_the_fleet_says_who_needs_a_person_and_counts_every_disk(desk: Opened) -> None:
    page = settled(desk.go("/"))
    expect(page.locator("h1")).to_have_text(re.compile(r"^(No disk needs|\d+ (disks?|things?) needs?) you$"))
    counts = page.locator(".count b").all_inner_texts()
    assert sum(int(many.replace(",", "")) for many in counts) == len(desk.api("osds")["items"])


def test_the_map_is_drawn_for_every_disk(desk: Opened) -> None:
    page = settled(desk.go("/fleet"))
    expect(page.locator(".map canvas")).to_be_visible()
    inked = page.locator(".map canvas").evaluate(
        "sheet => { const d = sheet.getContext('2d').getImageData(0, 0, sheet.width, sheet.height).data;"
        " let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i]) n += 1; return n; }"
    )
    assert inked > 12 * len(desk.api("osds")["items"])


@pytest.mark.parametrize("path", VIEWS)
def test_no_view_complains_or_shows_what_is_no_number(desk: Opened, path: str) -> None:
    page = settled(desk.go(path))
    text = page.locator("main").inner_text()
    assert not re.search(r"\b(NaN|undefined|null|Infinity)\b|\[object", text), text
    assert desk.complaints == []


def test_a_disk_says_why_how_sure_and_what_happens_next(desk: Opened) -> None:
    osd = a_disk(desk)
    page = settled(desk.go(f"/devices/{osd['device']}"))
    expect(page.locator("h1")).to_contain_text(f"osd.{osd['osd']}")
    for title in ("Why", "How sure", "What happens next", "What was done"):
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    assert not re.search(r"\b(NaN|undefined|null)\b", page.locator("main").inner_text())
    assert desk.complaints == []


def test_an_osd_number_leads_to_the_disk_under_it(desk: Opened) -> None:
    osd = a_disk(desk)
    page = desk.go(f"/osds/{osd['osd']}")
    page.wait_for_url(re.compile(r"/devices/"))
    expect(page.locator(".identity")).to_contain_text(osd["device"])


def test_keys_find_a_disk_and_open_it(desk: Opened) -> None:
    osd = a_disk(desk)
    page = settled(desk.go("/fleet"))
    page.keyboard.press("/")
    page.keyboard.type(f"osd.{osd['osd']}")
    expect(page.locator("#found li").first).to_contain_text(f"osd.{osd['osd']}")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text(f"osd.{osd['osd']}")


def test_arrows_walk_the_map_and_enter_opens(desk: Opened) -> None:
    page = settled(desk.go("/fleet"))
    page.locator('[role="gridcell"][tabindex="0"]').focus()
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "before => document.activeElement.getAttribute('aria-label') !== before", arg=first
    )
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert page.locator('[role="gridcell"][tabindex="0"]').count() == 1
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/devices/"))
    expect(page.locator("h1")).to_contain_text(label.split(",")[0])


def test_the_address_keeps_what_is_coloured_and_filtered(desk: Opened) -> None:
    page = settled(desk.go("/fleet"))
    page.get_by_role("link", name="Fullness").click()
    page.locator(".count").first.click()
    page.get_by_label("Host, model or rack").fill("r2")
    page.wait_for_url(re.compile(r"by=fullness&status=\w+&q=r2$"))
    page.reload()
    settled(page)
    expect(page.locator('.segments [aria-current="true"]')).to_have_text("Fullness")
    expect(page.locator('.count[aria-pressed="true"]')).to_have_count(1)
    expect(page.get_by_label("Host, model or rack")).to_have_value("r2")


def test_without_the_token_a_button_that_acts_is_there_but_off(desk: Opened) -> None:
    page = settled(desk.go("/drains"))
    hold = page.get_by_role("button", name="Hold all drains").first
    expect(hold).to_have_attribute("aria-disabled", "true")
    expect(hold).to_have_attribute("title", "needs the token")
    hold.click(force=True)
    assert desk.api("halt")["halted"] is None


def test_the_token_leaves_the_address_at_once(desk: Opened, token: str) -> None:
    page = settled(desk.go("/fleet", token))
    assert "token" not in page.url
    expect(page.get_by_role("button", name="Hold all drains").first).not_to_have_attribute(
        "aria-disabled", "true"
    )


def test_one_click_holds_all_drains_and_lifting_asks_first(desk: Opened, token: str) -> None:
    page = settled(desk.go("/drains", token))
    page.get_by_role("button", name="Hold all drains").first.click()
    expect(page.locator(".banner.halted")).to_be_visible()
    assert desk.api("halt")["halted"]
    page.get_by_role("button", name="Lift the hold").click()
    assert desk.api("halt")["halted"], "the question alone must not lift it"
    page.get_by_role("dialog").get_by_role("button", name="Lift the hold").click()
    expect(page.locator(".banner.halted")).to_have_count(0)
    assert desk.api("halt")["halted"] is None


def test_a_lost_service_is_said_and_what_acts_goes_off(desk: Opened, token: str) -> None:
    page = settled(desk.go("/drains", token))
    page.route("**/api/v1/**", lambda route: route.abort())
    expect(page.locator(".live.lost")).to_contain_text("Not live", timeout=30_000)
    expect(page.get_by_role("button", name="Hold all drains").first).to_have_attribute(
        "aria-disabled", "true"
    )
    page.unroute("**/api/v1/**")
    expect(page.locator(".live.live")).to_be_visible(timeout=60_000)


@pytest.mark.parametrize("path", VIEWS)
def test_nothing_runs_off_a_phone(phone: Opened, path: str) -> None:
    page = settled(phone.go(path))
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    expect(page.locator("nav.tabs")).to_be_visible()
    assert phone.complaints == []


def test_a_tap_on_the_map_opens_the_rack_on_a_phone(phone: Opened) -> None:
    page = settled(phone.go("/fleet"))
    page.locator(".map canvas").scroll_into_view_if_needed()
    page.locator(".map canvas").tap(position={"x": 40, "y": 60})
    page.wait_for_url(re.compile(r"rack="))
    expect(page.get_by_role("link", name="All racks")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_accessible_in_light_and_dark(browser: Browser, base_url: str, scheme: str) -> None:
    if not AXE.exists():
        missing("axe-core is not installed; run: make setup")
    context = browser.new_context(
        viewport=DESK, color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce"
    )
    opened = Opened(context, base_url)
    osd = a_disk(opened)
    found = []
    for path in (*VIEWS, f"/devices/{osd['device']}"):
        page = settled(opened.go(path))
        page.evaluate(AXE.read_text())
        report = page.evaluate("axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] })")
        found += [
            (path, violation["id"], [node["html"][:160] for node in violation["nodes"][:3]])
            for violation in report["violations"]
        ]
    context.close()
    assert found == []
