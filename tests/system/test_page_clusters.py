"""The page's view of several clusters: the own one, those whose services answer, and one that does not."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.system.browsing import Opened, answering, settled, unreadable_text, violations

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]


def with_others(desk: Opened) -> dict[str, Any]:
    """Answers with the demo's own overview, a cluster that answers and one that never did."""
    told = desk.api("clusters")
    east = {**told["own"], "cluster": "east", "halted": True, "bad": 7}
    told["others"] = [
        {"url": "https://east.example.org", "overview": east, "answered_at": east["at"], "refused": None},
        {
            "url": "https://a-cluster-with-a-long-name.west.example.org",
            "overview": None,
            "answered_at": None,
            "refused": "no service answers at https://a-cluster-with-a-long-name.west.example.org (timed out)",
        },
    ]
    answering(desk.page, "clusters", told)
    answering(desk.page, "status", desk.api("status") | {"other_clusters": 2})
    return told


def test_every_cluster_has_a_row_with_what_its_service_said_or_why_it_said_nothing(desk: Opened) -> None:
    told = with_others(desk)
    page = settled(desk.go("/clusters"))
    rows = page.locator("table").first.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text(f"{told['own']['fresh']} of {told['own']['disks']}")
    expect(rows.nth(1)).to_contain_text("halted")
    expect(rows.nth(1).get_by_role("link")).to_have_attribute("href", "https://east.example.org")
    expect(rows.nth(2)).to_contain_text("not reported")
    expect(rows.nth(2)).to_contain_text("timed out")
    heads = page.locator("table").first.locator("thead th")
    expect(heads).to_have_text(
        [
            *("Cluster", "Health", "OSDs", "Disks read", "Bad", "Warning"),
            *("Expected failures, 30 days", "Drains under way", "Answered"),
        ]
    )
    expect(page.locator("table thead th.number")).to_have_text(
        [
            *("OSDs", "Disks read", "Bad", "Warning", "Expected failures, 30 days", "Drains under way"),
            *("Disks", "Newly bad", "Bad", "Warning"),
        ]
    )
    models = page.locator("table").nth(1).locator("tbody tr")
    expect(models).to_have_count(len(told["models"]))
    assert unreadable_text(page) == []
    assert desk.complaints == []


def test_the_view_stands_in_the_header_only_where_other_clusters_are_configured(desk: Opened) -> None:
    page = settled(desk.go("/fleet"))
    expect(page.locator("nav.rooms").get_by_role("link", name="Clusters")).to_have_count(0)
    with_others(desk)
    page = settled(desk.go("/fleet"))
    expect(page.locator("nav.rooms").get_by_role("link", name="Clusters")).to_have_count(1)


def test_without_other_clusters_the_view_names_the_setting(desk: Opened) -> None:
    page = settled(desk.go("/clusters"))
    expect(page.locator(".empty")).to_contain_text("[clusters]")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_view_is_readable_for_everybody(desk: Opened, width: int, scheme: Any) -> None:
    with_others(desk)
    desk.page.set_viewport_size({"width": width, "height": 800})
    desk.page.emulate_media(color_scheme=scheme)
    page = settled(desk.go("/clusters"))
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
