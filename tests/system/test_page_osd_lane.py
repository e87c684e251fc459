"""The time axis of a disk's page in a real browser: what its OSD went through, and the cursor by keys."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
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

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

SHAPES: dict[str, tuple[ViewportSize, Any]] = {
    "desk-light": (DESK, "light"),
    "desk-dark": (DESK, "dark"),
    "phone-light": (PHONE, "light"),
    "phone-dark": (PHONE, "dark"),
}
POINTS = 48
HOURS = 168 / POINTS


def milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def show_an_osd_in_trouble(opened: Opened) -> Page:
    """The page of a disk whose OSD was slow for a day, was down, and is drained now."""
    osd = next(osd for osd in opened.api("osds")["items"] if osd["device"] is not None and osd["up"])
    path = f"devices/{osd['device']}"
    history = opened.api(f"{path}/history?days=7")
    begin = datetime.fromisoformat(history["from"]).astimezone(UTC)

    def at(point: float) -> datetime:
        return begin + timedelta(hours=point * HOURS)

    def points(values: list[float]) -> list[tuple[int, float]]:
        return [(milliseconds(at(place)), value) for place, value in enumerate(values)]

    slow = [20 <= place < 28 for place in range(POINTS)]
    told = {
        "temperature_c": [30.0 + place % 5 for place in range(POINTS)],
        "latency_ratio": [2.4 if one else 1.0 for one in slow],
        "commit_ms": [19.2 if one else 8.0 for one in slow],
        "slow_minutes": [150.0 if one else 0.0 for one in slow],
        "slow_ops": [3.0 if place in (22, 23) else 0.0 for place in range(POINTS)],
    }
    history["series"] = [
        {"name": name, "unit": None, "points": points(values)} for name, values in told.items()
    ]
    common = {"host": osd["host"], "device": osd["device"], "osd": osd["osd"], "href": "/drains"}
    events = [
        common
        | {
            "at": at(when).isoformat(),
            "kind": kind,
            "group": kind.partition("_")[0],
            "drain": "d-7" if kind.startswith("drain") else None,
            "sentence": f"osd.{osd['osd']}: {kind.replace('_', ' ')}.",
        }
        for when, kind in (
            (25, "osd_down"),
            (26, "osd_up"),
            (30, "drain_proposed"),
            (33, "drain_draining"),
            (40, "drain_holding"),
            (42, "drain_draining"),
        )
    ]
    answering(opened.page, "devices/[^/]+/history", history)
    answering(opened.page, "history", {"items": events[::-1], "next": None})
    page = settled(opened.go(f"/devices/{osd['device']}?days=7"))
    expect(page.locator(".history .spans").first).to_be_visible()
    return page


@pytest.fixture(params=SHAPES)
def opened(browser: Browser, base_url: str, request: pytest.FixtureRequest) -> Any:
    size, scheme = SHAPES[request.param]
    narrow = size is PHONE
    context = browser.new_context(viewport=size, color_scheme=scheme, has_touch=narrow, is_mobile=narrow)
    yield Opened(context, base_url)
    context.close()


def test_the_lane_of_an_osd_shows_its_drains_its_slow_minutes_and_its_slow_operations(
    opened: Opened, request: pytest.FixtureRequest
) -> None:
    page = show_an_osd_in_trouble(opened)
    bars = page.locator(".history .spans")
    counts = [bars.nth(row).locator("rect.span").count() for row in range(bars.count())]
    assert counts == [4, 1, 1], "a bar for each state of the drain, one slow stretch, one of slow operations"
    chart = page.locator(".history .lanes svg")
    expect(chart).to_contain_text("OSD latency")
    expect(chart).to_contain_text("slow minute")
    page.locator(".history .lanes").scroll_into_view_if_needed()
    picture(page, f"osd-lane-{request.node.callspec.id}")
    assert fits(page)
    assert violations(page) == []
    assert unreadable_text(page) == []


def test_the_bars_of_an_osd_are_a_table_too(desk: Opened) -> None:
    page = show_an_osd_in_trouble(desk)
    page.locator(".history .as-table summary").click()
    drains = page.locator(".history table", has_text="OSD, drains")
    expect(drains.locator("tr")).to_have_count(4)
    expect(drains).to_contain_text("drain holding")
    expect(page.locator(".history table", has_text="OSD, slow minutes")).to_contain_text("1,200 slow minutes")
    expect(page.locator(".history table", has_text="OSD, slow ops")).to_contain_text(
        "3 slow ops at once at most"
    )


def test_keys_move_the_cursor_of_a_chart_and_its_values_are_announced_once_it_stands(desk: Opened) -> None:
    page = show_an_osd_in_trouble(desk)
    slider = page.locator(".history").get_by_role("slider", name="Cursor of the chart")
    hint = page.locator(".history .key-hint")
    said = page.locator(".history [aria-live=polite]")
    expect(hint).to_be_hidden()
    page.locator(".history .card-head a").last.focus()
    page.keyboard.press("Tab")
    expect(slider).to_be_focused()
    expect(hint).to_be_visible()
    expect(page.locator(".history .cursor")).to_have_count(1)
    picture(page, "cursor-keys-desk")
    page.evaluate(
        "said => { window.heard = []; new MutationObserver(() => said.textContent && heard.push(said.textContent))"
        ".observe(said, { childList: true, characterData: true, subtree: true }); }",
        said.element_handle(),
    )
    page.keyboard.press("Home")
    expect(slider).to_have_attribute("aria-valuenow", "0")
    for _ in range(21):
        page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuenow", "21")
    expect(said).to_contain_text(re.compile(r"OSD up, [\d,]+ slow minutes; OSD latency 2\.40x"))
    assert len(page.evaluate("heard")) == 1, "the values are said once, after the last key"
    page.keyboard.press("ArrowLeft")
    expect(slider).to_have_attribute("aria-valuenow", "20")
    page.keyboard.press("End")
    expect(slider).to_have_attribute("aria-valuenow", str(int(slider.get_attribute("aria-valuemax") or "0")))
    expect(said).to_contain_text("OSD up, draining")
    page.keyboard.press("Escape")
    expect(page.locator(".history .cursor")).to_have_count(0)
    expect(said).to_be_empty()
    assert violations(page) == []
    assert desk.complaints == []
