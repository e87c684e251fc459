"""The page's tables: disks without a cluster, sorted, saved and chosen; models; the values of a drive."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from predrain.service.cli.disk_rows import DISK_COLUMNS, OSD_COLUMNS
from tests.system.browsing import Opened, answering, fits, settled, unreadable_text, violations

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]


OF_THE_DISK = (
    "disk",
    "severity",
    "state",
    "size",
    "age",
    "temperature",
    "device_name",
    "protocol",
    "read_at",
)
"""The columns that the page fills from the disk where it is known."""


def without_a_cluster(opened: Opened) -> None:
    answering(opened.page, "osds", opened.api("osds") | {"items": [], "next": None})


def column(page: Page, name: str) -> list[str]:
    cells: list[str] = page.locator(f".sheet-table tbody .col-{name}").all_inner_texts()
    return cells


def choose_rows_on_page(page: Page, count: int) -> Locator:
    """Check the boxes of the first rows, and return the bar of chosen disks."""
    for place in range(count):
        page.locator("tbody .choose input").nth(place).check()
    return page.get_by_role("region", name="Chosen disks")


def is_written_as(cell: str, value: object) -> bool:
    """Return True if a cell of the file has a value of the command line. Numbers may differ by 1e-8 of the value."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return cell != "" and float(cell) == pytest.approx(value, rel=1e-8)
    return cell == (value or "")


def list_told_values(osd: dict[str, Any], disks: dict[str, dict[str, Any]]) -> dict[str, object]:
    """Return what the command line writes of an OSD and its disk, by the heads of its columns.

    Some columns are of both commands. The disk's value, where it is known, counts in those that the page fills from
    the disk.
    """
    told: dict[str, object] = {column.csv_head: column.value(osd) for column in OSD_COLUMNS}
    disk = disks.get(osd["device"])
    if disk is not None:
        of_disk = {
            column.csv_head: column.value(disk) for column in DISK_COLUMNS if column.name in OF_THE_DISK
        }
        told |= {head: value for head, value in of_disk.items() if value is not None or head not in told}
    return told | {"osd": str(osd["osd"])}


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


@pytest.mark.parametrize(
    ("path", "count"), [("/fleet", 1), ("/fleet?table=1", 0), ("/fleet?table=models", 0)]
)
def test_the_keys_of_the_map_are_named_under_the_map_alone(desk: Opened, path: str, count: int) -> None:
    page = settled(desk.go(path))
    expect(page.locator(".trust")).to_be_visible()
    expect(page.locator(".trust kbd", has_text="Enter")).to_have_count(count)


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


def test_the_table_is_saved_with_the_columns_and_values_of_the_command_line(
    desk: Opened, tmp_path: Path
) -> None:
    page = settled(desk.go("/fleet?table=1"))
    with page.expect_download() as saving:
        page.get_by_role("button", name="as CSV").click()
    saving.value.save_as(tmp_path / "disks.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "disks.csv").read_text())))
    osds = {str(osd["osd"]): osd for osd in desk.api("osds")["items"]}
    disks = {disk["device"]: disk for disk in desk.api("devices?limit=10000")["items"]}
    assert {row["osd"] for row in rows} == osds.keys()
    differing = [
        (row["osd"], head, row[head], value)
        for row in rows
        for head, value in list_told_values(osds[row["osd"]], disks).items()
        if not is_written_as(row[head], value)
    ]
    assert differing == []


def test_chosen_disks_are_silenced_each_by_a_silence_of_its_own(desk: Opened, token: str) -> None:
    page = settled(desk.go("/fleet?table=1", token))
    choose_rows_on_page(page, 2).get_by_role("button", name="Silence").click()
    page.get_by_label("Reason of the silences").fill("being moved")
    page.get_by_role("button", name="Silence 2 disks").click()
    expect(page.get_by_role("dialog")).to_contain_text("2 silenced.")
    made = [one for one in desk.api("silences")["items"] if one["reason"] == "being moved"]
    for one in made:  # the demo is shared with tests that begin without a silence
        lifted = page.request.delete(
            desk.address(f"/api/v1/silences/{one['id']}"), headers={"Authorization": f"Bearer {token}"}
        )
        assert lifted.ok, lifted.text()
    assert len({one["name"] for one in made}) == 2


def test_chosen_disks_are_noted_and_proposed_by_the_routes_of_a_single_disk(desk: Opened, token: str) -> None:
    asked: list[tuple[str, Any]] = []

    def keep(route: Route) -> None:
        if route.request.method != "POST":
            route.fallback()
            return
        asked.append((route.request.url.split("/api/v1/")[1], route.request.post_data_json))
        route.fulfill(status=201, content_type="application/json", body="{}")

    desk.page.route(re.compile(r"/api/v1/(drains|devices/.*/outcome)$"), keep)
    osds = {osd["osd"]: osd for osd in desk.api("osds")["items"]}
    free = [osd for osd in osds.values() if osd["drain"] is None and osd["device"]][:2]
    answering(desk.page, "osds", desk.api("osds") | {"items": free, "next": None})
    page = settled(desk.go("/fleet?table=1", token))
    bar = choose_rows_on_page(page, 2)
    bar.get_by_role("button", name="Propose drains").click()
    page.get_by_label("Reason of the drains").fill("old firmware")
    page.get_by_role("button", name="Propose 2 drains").click()
    expect(page.get_by_role("dialog")).to_contain_text("2 proposed.")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    bar.get_by_role("button", name="Say what became of them").click()
    page.get_by_role("dialog").get_by_role("radio").first.check()
    page.get_by_role("dialog").get_by_role("button", name="Note 2 disks").click()
    expect(page.get_by_role("dialog")).to_contain_text("2 noted.")
    assert {body["target"] for path, body in asked if path == "drains"} == {
        f"osd.{osd['osd']}" for osd in free
    }
    noted = {unquote(path.split("/")[1]) for path, _ in asked if path.endswith("/outcome")}
    assert noted == {osd["device"] for osd in free}
    assert len(asked) == 4


def test_a_visitor_without_scope_act_can_choose_disks_but_the_action_buttons_are_off(desk: Opened) -> None:
    page = settled(desk.go("/fleet?table=1"))
    bar = choose_rows_on_page(page, 1)
    for name in ("Silence", "Say what became of them", "Propose drains"):
        expect(bar.get_by_role("button", name=name)).to_have_attribute("aria-disabled", "true")


def test_on_a_phone_a_card_begins_with_the_status_and_its_reason_stands_above_its_place(
    phone: Opened,
) -> None:
    page = settled(phone.go("/fleet?table=1"))
    row = page.locator(".sheet-table tbody tr").first
    heights = [
        box["y"]
        for name in ("severity", "why", "host", "model")
        if (box := row.locator(f".col-{name}").bounding_box()) is not None
    ]
    assert len(heights) == 4
    assert heights == sorted(heights)
    assert fits(page)


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
    assert fits(page)
