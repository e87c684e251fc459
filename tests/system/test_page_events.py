"""The view of events in a real browser: what happened, searched and filtered, on a desk and on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.system.browsing import (
    DESK,
    PHONE,
    Opened,
    answering,
    fits,
    picture,
    settled,
    unreadable_text,
    violations,
)

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]


@pytest.fixture(params=[DESK, PHONE], ids=["desk", "phone"])
def opened(browser: Browser, base_url: str, request: pytest.FixtureRequest) -> Iterator[Opened]:
    size: ViewportSize = request.param
    context = browser.new_context(viewport=size, has_touch=size is PHONE, is_mobile=size is PHONE)
    yield Opened(context, base_url)
    context.close()


def event_of(opened: Opened, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = opened.api(f"history?kind={kind}&limit=1")["items"][0]
    return found


def lines(page: Page) -> Any:
    return page.locator(".happenings > li")


def test_events_are_told_with_the_year_and_a_link_each(opened: Opened) -> None:
    page = settled(opened.go("/events"))
    expect(lines(page).first).to_be_visible()
    told = page.locator(".happenings time").all_inner_texts()
    assert all(re.fullmatch(r"2018-\d\d-\d\d \d\d:\d\d", time) for time in told)
    assert told == sorted(told, reverse=True)
    assert page.locator(".happenings > li > a[href]").count() == lines(page).count()
    assert fits(page)
    assert unreadable_text(page) == []
    assert violations(page) == []
    assert opened.complaints == []
    picture(page, "events")


def test_a_search_leaves_what_holds_every_word_and_the_address_keeps_it(opened: Opened) -> None:
    drain = event_of(opened, "drain_handed_over")
    page = settled(opened.go("/events"))
    box = page.get_by_label("Words in the event")
    box.press_sequentially(f"handed osd.{drain['osd']} ", delay=20)
    expect(lines(page)).to_have_count(1)
    expect(lines(page)).to_contain_text(drain["sentence"])
    assert box.input_value() == f"handed osd.{drain['osd']} ", "what is typed is the person's"
    page.reload()
    expect(page.get_by_label("Words in the event")).to_have_value(f"handed osd.{drain['osd']}")
    expect(lines(page)).to_have_count(1)
    lines(page).locator(f'a[href="{drain["href"]}"]').click()
    expect(page.locator("h1")).to_be_visible()
    assert page.url.endswith(drain["href"])


def test_events_are_filtered_by_kind_host_disk_and_time(opened: Opened) -> None:
    drain = event_of(opened, "drain_handed_over")
    page = settled(opened.go("/events"))
    page.get_by_role("button", name="Drains", exact=True).click()
    page.get_by_label("Host").select_option(drain["host"])
    page.wait_for_url(re.compile(rf"kind=drain&host={drain['host']}$"))
    asked = f"history?kind=drain&host={drain['host']}"
    expect(lines(page)).to_have_count(len(opened.api(asked)["items"]))
    expect(lines(page).first).to_contain_text(re.compile("drain", re.IGNORECASE))
    page.get_by_role("link", name="Show all events").click()
    expect(page.get_by_label("Host")).to_have_value("")
    page.get_by_label("Disk or OSD").fill(f"osd.{drain['osd']}")
    expect(lines(page)).to_have_count(len(opened.api(f"history?disk=osd.{drain['osd']}")["items"]))
    page.get_by_label("When").select_option("in the last day")
    expect(page.locator("main")).to_contain_text("Nothing of that is known to have happened.")


def test_the_host_or_the_disk_of_an_event_shows_only_its_events(opened: Opened) -> None:
    drain = event_of(opened, "drain_handed_over")
    page = settled(opened.go(f"/events?q=osd.{drain['osd']}"))
    page.get_by_title(f"Only events of {drain['host']}").first.click()
    expect(page.get_by_label("Host")).to_have_value(drain["host"])
    page.get_by_title(f"Only events of osd.{drain['osd']}").first.click()
    expect(page.get_by_label("Disk or OSD")).to_have_value(f"osd.{drain['osd']}")


def test_older_events_are_a_page_of_their_own_to_which_the_browser_goes_back(opened: Opened) -> None:
    first = event_of(opened, "drain_handed_over")
    new = first | {"sentence": "osd.1 is down.", "at": "2018-02-20T10:00:00Z"}
    old = first | {"sentence": "osd.2 is down.", "at": "2017-02-20T10:00:00Z"}
    answering(opened.page, r"history\?limit=100", {"items": [new], "next": "abc"})
    answering(opened.page, r"history\?limit=100&cursor=abc", {"items": [old], "next": None})
    page = settled(opened.go("/events"))
    page.get_by_role("link", name="Older events").click()
    expect(lines(page)).to_contain_text("2017-02-20 10:00")
    page.go_back()
    expect(lines(page)).to_contain_text("2018-02-20 10:00")
    page.go_forward()
    page.get_by_role("link", name="Newest events").click()
    expect(lines(page)).to_contain_text("osd.1 is down.")


def test_a_service_that_refuses_is_told_and_the_search_stays(opened: Opened) -> None:
    page = settled(opened.go("/events"))
    page.route(
        re.compile(r"/api/v1/history"),
        lambda route: route.fulfill(
            status=503, content_type="application/problem+json", body='{"detail": "Not now."}'
        ),
    )
    box = page.get_by_label("Words in the event")
    box.press_sequentially("failed")
    expect(page.locator(".refused-line")).to_have_text("Not now.")
    expect(box).to_have_value("failed")
    expect(box).to_be_focused()
