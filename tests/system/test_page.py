"""The page in a real browser over a running service: what a person sees, reaches by key, and can stop.

`base_url` is where the service answers, `token` what lets the page act; both are this folder's fixtures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, ViewportSize, expect

from tests.system.browsing import (
    DESK,
    PHONE,
    Opened,
    answering,
    picture,
    settled,
    unreadable_text,
    violations,
)

VIEWS = (
    "/fleet",
    "/fleet?table=1",
    "/fleet?table=models",
    "/drains",
    "/events",
    "/alerts",
    "/forecast",
    "/clusters",
    "/report",
)

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]


@pytest.fixture
def phone(browser: Browser, base_url: str) -> Iterator[Opened]:
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark")
    yield Opened(context, base_url)
    context.close()


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
    assert unreadable_text(page) == []
    assert desk.complaints == []


def test_a_disk_says_why_how_sure_and_what_happens_next(desk: Opened) -> None:
    osd = a_disk(desk)
    page = settled(desk.go(f"/devices/{osd['device']}"))
    expect(page.locator("h1")).to_contain_text(f"osd.{osd['osd']}")
    for title in ("Why", "How sure", "What happens next", "What was done"):
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    assert unreadable_text(page) == []
    assert desk.complaints == []


def test_a_disk_says_whose_metadata_lies_on_it_and_what_clients_felt(desk: Opened) -> None:
    device = a_disk(desk)["device"]
    seats = [{"osd": osd, "role": role} for osd in range(3, 12) for role in ("db", "wal")]
    whole = desk.api(f"devices/{device}") | {"osd_devices": [*seats[:4], *seats[4::2]]}
    history = desk.api(f"devices/{device}/history")
    times = [at for at, _ in history["series"][0]["points"]][:3]
    waits = [(at, wait) for at, wait in zip(times, (4.0, None, 21.3), strict=True)]
    history["series"].append({"name": "read_ms", "unit": "ms", "points": waits})
    answering(desk.page, "devices/[^/]+", whole)
    answering(desk.page, "devices/[^/]+/history", history)
    page = settled(desk.go(f"/devices/{device}"))
    expect(page.locator(".identity")).to_contain_text(
        "DB of osd.3, osd.4, osd.5, osd.6, osd.7, osd.8 and 3 more; WAL of osd.3, osd.4"
    )
    expect(page.locator(".lanes svg")).to_contain_text("Reads took")
    expect(page.locator(".lanes svg")).to_contain_text("21.3 ms")


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


HASTE = """async cell => {
    const said = () => document.activeElement.dataset.index;
    const drawn = () => new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)));
    cell.focus();
    const labels = [said()];
    for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft", "Home"]) {
        await null; await null;  // what the key before changed stands in the page, and is not painted yet
        document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    }
    await drawn();
    labels.push(said());
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    await null; await null;
    labels.push(said());
    return labels;
}"""


def test_keys_faster_than_the_screen_are_followed_all_the_same(desk: Opened) -> None:
    page = settled(desk.go("/fleet"))
    first, home, second = page.locator('[role="gridcell"][tabindex="0"]').evaluate(HASTE)
    assert home == first == "0"
    assert second == "1"


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
    halt = page.get_by_role("button", name="Halt all drains")
    expect(halt).to_have_attribute("aria-disabled", "true")
    expect(halt).to_have_attribute("title", "sign in to act")
    halt.click(force=True)
    assert desk.api("halt")["halted"] is None


def test_the_token_leaves_the_address_at_once(desk: Opened, token: str) -> None:
    page = settled(desk.go("/fleet", token))
    assert "token" not in page.url
    expect(page.get_by_role("button", name="Halt all drains")).not_to_have_attribute("aria-disabled", "true")


def test_one_click_halts_all_drains_and_lifting_asks_first(desk: Opened, token: str) -> None:
    page = settled(desk.go("/drains", token))
    page.get_by_role("button", name="Halt all drains").click()
    expect(page.locator(".banner.halted")).to_be_visible()
    assert desk.api("halt")["halted"]
    page.get_by_role("button", name="Lift the halt").click()
    assert desk.api("halt")["halted"], "the question alone must not lift it"
    page.get_by_role("dialog").get_by_role("button", name="Lift the halt").click()
    expect(page.locator(".banner.halted")).to_have_count(0)
    assert desk.api("halt")["halted"] is None


def test_a_plan_that_is_made_anew_while_somebody_reads_it_says_what_has_changed(
    desk: Opened, token: str, base_url: str
) -> None:
    known = next(drain for drain in desk.api("drains")["items"] if drain["plan"])
    drain = desk.api(f"drains/{known['id']}") | {"state": "proposed", "guards": []}
    drain["plan"] |= {"fullest_after": 0.75, "refusals": []}
    answering(desk.page, "drains/[^/]+", drain)
    page = settled(desk.go(f"/drains/{drain['id']}", token))
    expect(page.get_by_role("button", name="Approve: move")).to_be_visible()
    expect(page.locator(".moved")).to_have_count(0)
    drain["plan"] |= {"fullest_after": 0.84}
    answering(page, "drains/[^/]+", drain)
    for why in ("a change for all who look", None):
        caller = {"Authorization": f"Bearer {token}"}
        assert page.request.post(f"{base_url}/api/v1/halt", headers=caller, data={"reason": why}).ok
    expect(page.locator(".moved")).to_contain_text("The plan has changed")
    expect(page.locator(".moved")).to_contain_text("Fullest after: 75.0 % before, 84.0 % now")


def test_a_cause_is_silenced_with_a_reason_and_the_silence_lifted(desk: Opened, token: str) -> None:
    page = desk.go("/alerts", token)
    card = page.locator(".alert-list > li").filter(has=page.get_by_role("button", name="Silence")).first
    title = card.locator("b a").inner_text()
    card.get_by_role("button", name="Silence").click()
    dialog = page.get_by_role("dialog", name="Silence this cause?")
    yes = dialog.get_by_role("button", name="Silence it")
    expect(yes).to_be_disabled()
    dialog.get_by_label("For how long").select_option("a day")
    dialog.get_by_label("Reason of the silence").fill("known since yesterday")
    yes.click()
    expect(page.locator(".alert-list > li").filter(has_text=title).first).to_contain_text("silenced")
    kept = page.locator("section[aria-labelledby=silences-head] li").filter(has_text="known since yesterday")
    kept.get_by_role("button", name="Lift").click()
    expect(kept).to_have_count(0)


def test_a_silence_by_matchers_shows_before_what_it_would_cover(desk: Opened, token: str) -> None:
    page = settled(desk.go("/alerts", token))
    cause = next(one for one in desk.api("causes")["items"] if one["key"].startswith("disks:"))
    page.get_by_role("button", name="Add by matchers").click()
    dialog = page.get_by_role("dialog", name="Silence by matchers")
    yes = dialog.get_by_role("button", name="Silence it")
    dialog.get_by_label("Reason of the silence").fill("work in the rack")
    expect(yes).to_be_disabled()
    dialog.get_by_label("Causes").fill(cause["key"])
    expect(dialog.locator(".preview")).to_contain_text(cause["points"][0]["sentence"][:30])
    assert violations(page) == []
    assert desk.api("silences")["items"] == []
    yes.click()
    kept = page.locator("section[aria-labelledby=silences-head] li").filter(has_text="work in the rack")
    expect(kept).to_contain_text(f"cause {cause['key']}")
    kept.get_by_role("button", name="Lift").click()
    expect(kept).to_have_count(0)


def test_a_test_message_is_sent_by_a_button_and_its_result_is_said(desk: Opened, token: str) -> None:
    page = desk.page
    receiver = {
        "name": "slack.storage", "min_severity": "notice", "only_hosts": [], "only_racks": ["a*"], "sent": 3,
        "failed": 1, "last_sent_at": None, "problem": "the receiver answered 404",
    }  # fmt: skip
    answering(page, "receivers", {"items": [receiver]})
    result = {"name": "slack.storage", "delivered": False, "problem": "it answered 404 (no_service)"}
    page.route("**/api/v1/receivers/slack.storage/test", lambda route: route.fulfill(json=result))
    settled(desk.go("/alerts", token))
    listed = page.locator("section[aria-labelledby=receivers-head] li")
    expect(listed).to_contain_text("slack.storage notices, too, rack a*")
    expect(listed).to_contain_text("the receiver answered 404")
    listed.get_by_role("button", name="Send a test to slack.storage").click()
    expect(page.locator(".banner.refused")).to_contain_text(
        "slack.storage did not take it: it answered 404 (no_service)"
    )
    assert violations(page) == []


def test_a_lost_service_is_said_and_what_acts_goes_off(desk: Opened, token: str) -> None:
    page = settled(desk.go("/drains", token))
    page.route("**/api/v1/**", lambda route: route.abort())
    expect(page.locator(".live.lost")).to_contain_text("Not live")
    expect(page.get_by_role("button", name="Halt all drains")).to_have_attribute("aria-disabled", "true")
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


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_accessible_in_light_and_dark(
    browser: Browser, base_url: str, scheme: str, size: ViewportSize
) -> None:
    context = browser.new_context(
        viewport=size,
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    opened = Opened(context, base_url)
    disk, drain = a_disk(opened), opened.api("drains")["items"][0]
    found = []
    for path in (*VIEWS, f"/devices/{disk['device']}", f"/drains/{drain['id']}"):
        found += violations(settled(opened.go(path)))
    context.close()
    assert found == []


def test_the_forecast_says_whose_it_is_and_what_came_of_it(desk: Opened) -> None:
    page = settled(desk.go("/forecast"))
    known = desk.api("forecast")
    assert known["comparison"]["failures"] > 0, "the demo's disks have died by now"
    expect(page.locator(".reign")).to_contain_text(known["bundle"]["fingerprint"])
    expect(page.locator(".reign")).to_contain_text("scores here since 22 Jan")
    expect(page.locator(".words")).to_contain_text("1 in 1,000 healthy disks")
    assert known["thresholds"][0]["disk_months"] > 0
    expect(page.locator(".reign")).to_contain_text("of this fleet's own healthy disks")
    right = page.locator("section[aria-labelledby=right-head]")
    expect(right).to_contain_text(f"of {known['comparison']['failures']} failures foretold")
    expect(right).to_contain_text("Too few to judge")
    seen = page.locator("section[aria-labelledby=calibration-head] tbody tr")
    expect(seen).to_have_count(len(known["calibration"]))
    drift = page.locator("section[aria-labelledby=drift-head]")
    expect(drift).to_contain_text(known["drift"][0]["family"])
    picture(page, "forecast")


def test_the_forecast_view_replays_other_costs_of_a_failure_and_marks_where_one_stands(desk: Opened) -> None:
    page = settled(desk.go("/forecast"))
    card = page.locator("section[aria-labelledby=preview-head]")
    card.get_by_role("button", name="Replay the last 90 days").click()
    expect(card.get_by_role("status")).to_contain_text("Replaying")
    expect(card.get_by_role("img")).to_contain_text("you are here (10)", timeout=120_000)
    known = desk.api("forecast/preview?days=90")
    rows = card.locator("tbody tr")
    expect(rows).to_have_count(len(known["rows"]))
    expect(rows.filter(has_text="set now")).to_have_count(1)
    expect(card).to_contain_text(f"of which {known['failures']} failed")
    assert unreadable_text(page) == []
    card.scroll_into_view_if_needed()
    picture(page, "forecast-preview")


def test_the_forecast_view_shows_the_reason_for_each_unknown_value(desk: Opened) -> None:
    body = desk.api("forecast")
    body |= {"checked_at": None, "drift": [], "calibration": [], "comparison": None, "since": None}
    answering(desk.page, "forecast", body)
    page = settled(desk.go("/forecast"))
    for head in ("right-head", "calibration-head", "drift-head"):
        expect(page.locator(f"section[aria-labelledby={head}]")).to_contain_text(
            "Unknown: the forecast has not been checked yet"
        )
    body |= {"checked_at": "2018-03-01T00:00:00Z"}
    page.reload()
    expect(page.locator("section[aria-labelledby=right-head]")).to_contain_text("no scorebook is kept here")
    assert unreadable_text(page) == []


def test_champion_and_challenger_stand_side_by_side_with_what_may_be_said(desk: Opened) -> None:
    body = desk.api("forecast")
    champion = {
        "bundle": "default-1", "detected": 14, "detected_bad": 9,
        "false_alarms": 3, "false_alarms_bad": 1, "brier": 0.0021,
        "expected": 30.2, "lead_days": 12.0,
    }  # fmt: skip
    rival = champion | {"bundle": "trial-2", "detected": 19, "brier": None, "lead_days": None}
    body |= {
        "challenger": {"name": "trial", "fingerprint": "trial-2"},
        "comparison": {
            "bundles": [champion, rival], "failures": 33, "healthy_windows": 9_000, "rows": 200_000,
            "observed": 30, "enough": True, "recall_gain": [0.02, 0.28], "brier_gain": None,
            "only_first": 2, "only_second": 11, "days": 120, "evidence": 42.0, "days_left": 0.0, "better": True,
            "sentence": "trial-2 is really better than default-1 in recall or Brier score.",
        },
        "concerns": [
            {"cause": "drift", "since": "2018-02-02T00:00:00Z", "families": ["X"], "sentence": "Drives of X moved.",
             "cure": "Train on newer readings."}
        ],
        "errors": {"bundle": "The challenger was changed on disk."},
    }  # fmt: skip
    answering(desk.page, "forecast", body)
    page = settled(desk.go("/forecast"))
    rivals = page.locator("section[aria-labelledby=rivals-head]")
    expect(rivals).to_contain_text("really better")
    expect(rivals.locator("tbody tr").first).to_have_text(re.compile("14 of 33.*19 of 33"))
    expect(rivals).to_contain_text("share foretold +0.02 to +0.28, Brier score unknown")
    expect(rivals).to_contain_text("foretells more: 42, and 20 are wanted")
    expect(page.locator(".concerns li")).to_have_count(2)
    right = page.locator("section[aria-labelledby=right-head]")
    expect(right).not_to_contain_text("Too few")
    expect(right).to_contain_text("half of them 12 days or more ahead")
    assert unreadable_text(page) == []
    assert violations(page) == []


SCRIPT = "<img src=x onerror=document.title='broken'><script>document.title='broken'</script>"


def test_script_in_a_model_a_host_or_a_reason_is_text(desk: Opened) -> None:
    body = desk.api("osds")
    body["items"] = body["items"][:40]
    for osd in body["items"]:
        osd |= {"host": SCRIPT, "rack": SCRIPT, "model": SCRIPT, "reasons": [SCRIPT], "prescription": SCRIPT}
        osd |= {"status": "bad", "p_fail_30d": 0.4, "drain": None}
    answering(desk.page, "osds", body)
    for path in ("/fleet", "/fleet?table=1", "/fleet?by=model", "/forecast"):
        page = settled(desk.go(path))
        assert "<img src=x" in page.locator("main").aria_snapshot(), path
        assert page.locator("main img").count() == 0
        assert page.title() != "broken"
    disk = next(osd for osd in desk.api("osds")["items"] if osd["device"])
    whole = desk.api(f"devices/{disk['device']}")
    outcome = {"at": "2018-02-02T00:00:00Z", "fate": "failed", "source": SCRIPT, "note": SCRIPT}
    whole |= {"host": SCRIPT, "model": SCRIPT, "outcomes": [outcome]}
    answering(desk.page, "devices/[^/]+", whole)
    page = settled(desk.go(f"/devices/{disk['device']}"))
    expect(page.locator("body")).to_contain_text("<img src=x")
    assert page.locator("main img").count() == 0
    assert page.title() != "broken"
    assert desk.complaints == []
