"""The halt stands on every view of the page, on a desk and on a phone, even if the page can show nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, ViewportSize, expect

from tests.system.browsing import DESK, PHONE, Opened, answering, settled, violations

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

FINGER_PX = 44


@pytest.fixture(params=[DESK, PHONE], ids=["desk", "phone"])
def opened(browser: Browser, base_url: str, request: pytest.FixtureRequest) -> Iterator[Opened]:
    size: ViewportSize = request.param
    context = browser.new_context(viewport=size, has_touch=size is PHONE, is_mobile=size is PHONE)
    yield Opened(context, base_url)
    context.close()


def width_of(page: Page) -> int:
    size = page.viewport_size
    assert size is not None
    return size["width"]


def check_reachable(page: Page, name: str) -> None:
    """The one button is whole in the window, before and after scrolling, large enough for a finger on a phone."""
    button = page.get_by_role("button", name=name, exact=True)
    expect(button).to_have_count(1)
    for end in ("0", "document.documentElement.scrollHeight"):
        page.evaluate(f"scrollTo(0, {end})")
        expect(button).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width_of(page)
    box = button.bounding_box()
    assert box is not None
    if width_of(page) == PHONE["width"]:
        assert box["height"] >= FINGER_PX
        assert box["width"] >= FINGER_PX


def every_address(opened: Opened) -> list[str]:
    """One address of each view, and of what a view says when it has nothing to show."""
    osd = next(osd for osd in opened.api("osds")["items"] if osd["device"])
    drain = opened.api("drains")["items"][0]
    return [
        "/fleet", "/fleet?table=1", "/fleet?q=nothing-of-that-name", f"/devices/{osd['device']}", f"/osds/{osd['osd']}",
        "/drains", f"/drains/{drain['id']}", "/events", "/alerts", "/forecast",
        "/nowhere", "/devices/nothing", "/drains/nothing", "/osds/999999",
    ]  # fmt: skip


def test_the_button_that_halts_stands_once_on_every_view(opened: Opened, token: str) -> None:
    opened.go("/fleet", token)
    found = []
    for path in every_address(opened):
        page = settled(opened.go(path))
        check_reachable(page, "Halt all drains")
        expect(page.get_by_role("button", name="Halt all drains")).not_to_have_attribute(
            "aria-disabled", "true"
        )
        found += violations(page)
    assert found == []


def test_a_halt_is_said_on_every_view_and_can_be_lifted_there(opened: Opened, token: str) -> None:
    status = opened.api("status") | {"halted": "switch maintenance", "halt_passes": False}
    answering(opened.page, "status", status)
    opened.go("/fleet", token)
    for path in every_address(opened):
        page = settled(opened.go(path))
        expect(page.locator(".banner.halted")).to_contain_text("All drains are halted: switch maintenance")
        check_reachable(page, "Lift the halt")
        expect(page.get_by_role("button", name="Halt all drains")).to_have_count(0)


def test_the_button_stands_while_nothing_is_loaded_yet(opened: Opened) -> None:
    waiting: list[Route] = []
    opened.page.route("**/api/v1/**", lambda route: waiting.append(route))
    page = opened.page
    page.goto(opened.address("/drains"))
    expect(page.locator(".loading")).to_be_visible()
    check_reachable(page, "Halt all drains")


def test_the_button_stands_where_the_service_refuses_what_the_view_shows(opened: Opened, token: str) -> None:
    def refuse(route: Route) -> None:
        route.fulfill(status=503, content_type="application/problem+json", body='{"detail": "Not now."}')

    settled(opened.go("/fleet", token))
    opened.page.route(re.compile(r"/api/v1/(status|osds|drains|alerts|causes|forecast)(/.*|\?.*)?$"), refuse)
    for path in ("/fleet", "/drains", "/drains/any", "/alerts", "/forecast"):
        page = opened.page
        page.goto(opened.address(path))
        expect(page.locator(".banner.warn")).to_contain_text("Not now.")
        check_reachable(page, "Halt all drains")


def test_all_drains_can_be_halted_while_the_stream_is_down_and_the_service_is_not(
    opened: Opened, token: str, base_url: str
) -> None:
    page = settled(opened.go("/fleet", token))
    page.route("**/api/v1/events", lambda route: route.abort())
    page.reload()
    expect(page.locator(".live.lost")).to_be_visible()
    halt = page.get_by_role("button", name="Halt all drains")
    expect(halt).not_to_have_attribute("aria-disabled", "true")
    try:
        halt.click()
        expect(page.locator(".banner.halted")).to_contain_text("halted by a person on the page")
        assert opened.api("halt")["halted"] == "halted by a person on the page"
        check_reachable(page, "Lift the halt")
    finally:
        caller = {"Authorization": f"Bearer {token}"}
        assert page.request.post(f"{base_url}/api/v1/halt", headers=caller, data={"reason": None}).ok


def test_the_button_is_off_and_says_so_where_no_service_answers(opened: Opened, token: str) -> None:
    page = settled(opened.go("/fleet", token))
    page.route("**/api/v1/**", lambda route: route.abort())
    expect(page.locator(".live.lost")).to_be_visible()
    halt = page.get_by_role("button", name="Halt all drains")
    expect(halt).to_have_attribute("aria-disabled", "true")
    check_reachable(page, "Halt all drains")
    halt.click(force=True)
    expect(page.locator(".banner.refused")).to_contain_text("nothing can be asked of the service now")


def test_the_dialog_that_a_message_links_to_halts_nothing_until_its_button_is_pressed(
    opened: Opened, token: str, base_url: str
) -> None:
    opened.go("/fleet", token)
    page = settled(opened.go("/drains?ask=halt"))
    dialog = page.get_by_role("dialog", name="Halt all drains?")
    expect(dialog).to_be_visible()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width_of(page)
    assert opened.api("halt")["halted"] is None
    dialog.get_by_role("button", name="Change nothing").click()
    expect(dialog).to_have_count(0)
    assert page.url.endswith("/drains")
    assert opened.api("halt")["halted"] is None
    opened.go("/drains?ask=halt")
    try:
        dialog.get_by_role("button", name="Halt them now").click()
        expect(page.locator(".banner.halted")).to_contain_text("halted by a person on the page")
        opened.go("/drains?ask=halt")
        expect(page.get_by_role("dialog", name="All drains are halted")).to_contain_text("halted by a person")
        expect(page.get_by_role("button", name="Halt them now")).to_have_count(0)
    finally:
        caller = {"Authorization": f"Bearer {token}"}
        assert page.request.post(f"{base_url}/api/v1/halt", headers=caller, data={"reason": None}).ok


def test_the_dialog_halts_nothing_for_a_visitor_who_has_not_signed_in(opened: Opened) -> None:
    page = settled(opened.go("/drains?ask=halt"))
    button = page.get_by_role("dialog", name="Halt all drains?").get_by_role("button", name="Halt them now")
    expect(button).to_have_attribute("aria-disabled", "true")
    button.click(force=True)
    assert opened.api("halt")["halted"] is None
