"""A text that a person types on the page stays as typed, however large the fleet is, and with any answer of the service
meanwhile.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.system.browsing import Opened, answering, many_disks, settled

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

WORDS = ("stor-0123", "st4000dm000", "r17")
PAUSES_MS = (0, 25, 60, 90, 120, 160)


def type_and_read(page: Page, label: str, word: str, pause_ms: int) -> str:
    """Type a word into an empty box, a key each `pause_ms`; what the box says then, read without waiting for it."""
    box = page.get_by_label(label)
    box.fill("")
    box.press_sequentially(word, delay=pause_ms)
    return box.input_value()


@pytest.mark.parametrize("table", ["", "?table=1"], ids=["map", "table"])
def test_no_letter_is_lost_that_is_typed_fast_at_six_thousand_osds(desk: Opened, table: str) -> None:
    answering(desk.page, "osds", many_disks(desk, 6_000, 20))
    page = settled(desk.go(f"/fleet{table}"))
    lost = []
    for pause_ms in PAUSES_MS:
        for word in WORDS:
            found = type_and_read(page, "Host, model or rack", word, pause_ms)
            lost += [(pause_ms, word, found)] if found != word else []
    assert lost == []
    page.wait_for_url(re.compile(rf"q={WORDS[-1]}$"))


def test_an_answer_of_the_service_does_not_touch_what_is_being_typed(desk: Opened) -> None:
    body = many_disks(desk, 60, 20)
    answering(desk.page, "osds", body)
    page = settled(desk.go("/fleet"))
    box = page.get_by_label("Host, model or rack")
    box.press_sequentially("stor")
    body["items"] = body["items"][:40]
    answering(page, "osds", body)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    box.press_sequentially("-0001 ")
    expect(box).to_be_focused()
    expect(page.locator(".count b").first).to_have_text("40")
    assert box.input_value() == "stor-0001 ", "the space may belong to a word that is still coming"


def test_a_box_that_was_left_shows_what_the_address_says(desk: Opened) -> None:
    page = settled(desk.go("/fleet?q=nowhere"))
    box = page.get_by_label("Host, model or rack")
    expect(box).to_have_value("nowhere")
    page.get_by_role("link", name="Show all disks").click()
    expect(box).to_have_value("")


def test_text_that_is_typed_just_before_a_link_is_followed_stays_out_of_the_next_view(desk: Opened) -> None:
    page = settled(desk.go("/fleet"))
    page.get_by_label("Host, model or rack").press_sequentially("stor")
    page.evaluate("document.querySelector('nav a[href=\"/drains\"]').click()")
    expect(page.locator("h1")).to_contain_text("drain")
    page.wait_for_timeout(500)
    assert page.url.endswith("/drains")


def test_the_find_box_holds_the_text_that_is_typed_right_after_the_key_that_opens_it(desk: Opened) -> None:
    answering(desk.page, "osds", many_disks(desk, 6_000, 20))
    page = settled(desk.go("/fleet"))
    page.keyboard.type("/osd.4217")
    expect(page.get_by_role("combobox")).to_have_value("osd.4217")
    expect(page.locator("#found li").first).to_contain_text("osd.4217")


def test_a_reason_that_is_being_typed_stays_while_the_service_refuses_the_list_behind_it(
    desk: Opened, token: str
) -> None:
    page = settled(desk.go("/alerts", token))
    page.get_by_role("button", name="Silence").first.click()
    why = page.get_by_role("dialog").get_by_label("Reason of the silence")
    why.press_sequentially("known since")

    def refuse(route: Route) -> None:
        route.fulfill(status=503, content_type="application/problem+json", body='{"detail": "Not now."}')

    page.route(re.compile(r"/api/v1/causes$"), refuse)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator(".refused-line")).to_have_text("Not now.")
    why.press_sequentially(" yesterday")
    expect(why).to_have_value("known since yesterday")
