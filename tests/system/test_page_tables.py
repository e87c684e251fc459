"""The page's tables: disks without a cluster, sorted, saved and chosen; models; the values of a drive."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.system.browsing import Opened, answering, settled, unreadable_text, violations

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]


def without_a_cluster(opened: Opened) -> None:
    answering(opened.page, "osds", opened.api("osds") | {"items": [], "next": None})


def column(page: Page, name: str) -> list[str]:
    cells: list[str] = page.locator(f".sheet-table tbody .col-{name}").all_inner_texts()
    return cells


def test_without_a_cluster_the_disks_that_were_read_stand_first(desk: Opened) -> None:
    without_a_cluster(desk)
    living = [
        one for one in desk.api("devices?limit=10000")["items"] if one["state"] not in ("failed", "retired")
    ]
    page = settled(desk.go("/fleet"))
    expect(page.locator(".sheet")).to_contain_text(f"{len(living)} disks")
    expect(page.locator(".lead")).to_contain_text(f"{len(living)} disks on")
    expect(page.locator("main")).not_to_contain_text("0 OSDs")
    assert unreadable_text(page) == []
    assert desk.complaints == []


def test_a_head_sorts_by_key_and_the_address_keeps_the_order(desk: Opened) -> None:
    page = settled(desk.go("/fleet?table=1"))
    head = page.locator("thead").get_by_role("button", name="Temp.")
    expect(head).to_be_visible()
    head.focus()
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort]")).to_have_attribute("aria-sort", "descending")
    assert "sort=-temperature" in page.url
    told = [int(cell.split()[0]) for cell in column(page, "temperature") if cell != "not reported"]
    assert told == sorted(told, reverse=True)


def test_the_table_is_saved_with_the_columns_of_the_command_line(desk: Opened, tmp_path: Path) -> None:
    page = settled(desk.go("/fleet?table=1"))
    with page.expect_download() as saving:
        page.get_by_role("button", name="as CSV").click()
    saving.value.save_as(tmp_path / "disks.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "disks.csv").read_text())))
    osds = {str(osd["osd"]): osd for osd in desk.api("osds")["items"]}
    assert {row["osd"] for row in rows} == osds.keys()
    assert all(row["id"] == osds[row["osd"]]["device"] for row in rows)
    assert {"size (TB)", "age (years)", "temperature (\u00b0C)", "why"} <= rows[0].keys()


def test_chosen_disks_are_silenced_each_by_a_silence_of_its_own(desk: Opened, token: str) -> None:
    page = settled(desk.go("/fleet?table=1", token))
    boxes = page.locator("tbody .choose input")
    boxes.nth(0).check()
    boxes.nth(1).check()
    page.get_by_role("region", name="Chosen disks").get_by_role("button", name="Silence").click()
    page.get_by_label("Reason of the silences").fill("being moved")
    page.get_by_role("button", name="Silence 2 disks").click()
    expect(page.get_by_role("dialog")).to_contain_text("2 silenced.")
    made = [one for one in desk.api("silences")["items"] if one["reason"] == "being moved"]
    assert len({one["name"] for one in made}) == 2


def test_a_disk_shows_each_value_beside_its_threshold_and_how_rare_it_is(desk: Opened) -> None:
    device = next(osd["device"] for osd in desk.api("osds")["items"] if osd["device"])
    told = desk.api(f"devices/{device}/attributes")
    page = settled(desk.go(f"/devices/{device}"))
    expect(page.locator(".attributes tbody tr")).to_have_count(len(told["values"]))
    expect(page.locator(".attributes thead")).to_contain_text("How rare")
    compared = next(one["rarity"]["compared"] for one in told["values"] if one["rarity"])
    expect(page.locator(".attributes .rarity").first).to_contain_text("other")
    assert compared > 0
    assert unreadable_text(page) == []


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/fleet", "/fleet?table=models", "/fleet?table=1"])
def test_the_tables_are_readable_for_everybody(desk: Opened, path: str, width: int, scheme: Any) -> None:
    if path == "/fleet":
        without_a_cluster(desk)
    desk.page.set_viewport_size({"width": width, "height": 844})
    desk.page.emulate_media(color_scheme=scheme)
    page = settled(desk.go(path))
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
