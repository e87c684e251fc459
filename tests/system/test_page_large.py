"""Every view of a fleet of 6,000 disks while drains are under way: how soon it shows data, and what a phone cuts off.

The service is a real demo; its lists of OSDs, disks, drains and announcements are answered with 6,000 disks.
`make bench` measures what the service itself needs for these lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.deadlines import measure_multiple
from tests.system.browsing import (
    DESK,
    PHONE,
    Opened,
    answering,
    fits,
    list_clipped_texts,
    many_disks,
    settled,
    unreadable_text,
    violations,
)
from tests.system.test_page import VIEWS

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]
DISKS, A_HOST, UNDER_WAY = 6_000, 20, 12
STATES = ("draining", "holding", "paused")
PROCESSOR_SECONDS = 1.0
"""Of the page's main thread, from the start of the navigation to the first data."""
OWN_VIEWS = ("disk", "drain")
"""The views of one disk and of one drain; their addresses are known once there is data."""


def answer_with_large_fleet(opened: Opened) -> dict[str, str]:
    """Let the lists hold 6,000 disks, of which some are drained now. Return the addresses of OWN_VIEWS."""
    ended = next(one for one in opened.api("drains")["items"] if one["intent"] == "replace")
    osds, drains = many_disks(opened, DISKS, A_HOST, drain=None), []
    disk = opened.api("devices?limit=1")["items"][0]
    shapes: dict[str, Any] = opened.api("openapi.json")["components"]["schemas"]
    fields = set(shapes["OsdDrainBody"]["properties"])
    for number in range(UNDER_WAY):
        osd, state = osds["items"][number * 500 % DISKS + number], STATES[number % len(STATES)]
        drains.append(
            ended
            | {"id": f"osd.{osd['osd']}-1", "state": state, "osds": [osd["osd"]], "end_reason": None}
            | {"held_by": ["osd.4 would be 86 % full, limit 85 %."] if state == "holding" else []}
        )
        shown = drains[-1] | drains[-1]["progress"] | {"state_text": state}
        osd["drain"] = {key: shown[key] for key in fields}
        osd |= {"status": "bad", "p_fail_30d": 0.3, "advice": "drain-now"}
    disks = [
        disk
        | {"device": f"{disk['device']}-{osd['osd']}", "serial": f"S{osd['osd']:05}", "host": osd["host"]}
        for osd in osds["items"]
    ]
    disks[0] = disk | {"host": osds["items"][0]["host"]}  # the one whose own page is looked at
    for osd, its in zip(osds["items"], disks, strict=True):
        osd["device"] = its["device"]
    answering(opened.page, "osds", osds)
    answering(opened.page, "devices", {"items": disks, "next": None})
    answering(opened.page, "drains", {"items": drains, "next": None})
    whole = opened.api(f"drains/{ended['id']}")
    for drain in drains:
        answering(opened.page, f"drains/{drain['id']}", whole | drain)
    answering(opened.page, r"drains/osd\.\d+-1/journal", opened.api(f"drains/{ended['id']}/journal"))
    return {"disk": f"/devices/{disks[0]['device']}", "drain": f"/drains/{drains[0]['id']}"}


def read_processor_seconds(page: Page, path: str) -> float:
    """Open a view, wait for its data, and return the processor time of the page's main thread, in s."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(path)
    settled(page)
    told = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return float(told["TaskDuration"])


@pytest.fixture(params=["light", "dark"])
def large(browser: Browser, base_url: str, request: pytest.FixtureRequest) -> Iterator[Opened]:
    context = browser.new_context(viewport=DESK, color_scheme=request.param, reduced_motion="reduce")
    yield Opened(context, base_url)
    context.close()


@pytest.mark.parametrize("view", [*VIEWS, *OWN_VIEWS])
def test_a_view_of_six_thousand_disks_with_drains_shows_its_data_within_a_second(
    desk: Opened, view: str
) -> None:
    path = answer_with_large_fleet(desk).get(view, view)
    taken = read_processor_seconds(desk.page, desk.address(path))
    print(f"\n{view}: {taken:.2f} s of the main thread")
    assert taken < PROCESSOR_SECONDS * measure_multiple()
    assert unreadable_text(desk.page) == []


@pytest.mark.parametrize("view", [*VIEWS, *OWN_VIEWS])
def test_no_text_is_cut_off_on_a_phone_while_six_thousand_disks_have_drains(large: Opened, view: str) -> None:
    path = answer_with_large_fleet(large).get(view, view)
    large.page.set_viewport_size(PHONE)
    page = settled(large.go(path))
    assert list_clipped_texts(page) == []
    assert fits(page)
    assert violations(page) == []
    assert large.complaints == []
