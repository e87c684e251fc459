"""The page when things are large, old, away or off: it cuts nothing, hides nothing, and says the same everywhere."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Route, expect

from tests.system.browsing import Opened, answering, fits, many_disks, settled, violations
from tests.system.conftest import Demo

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]


def test_the_frame_stands_before_the_service_has_answered(desk: Opened) -> None:
    waiting: list[Route] = []
    desk.page.route("**/api/v1/**", lambda route: waiting.append(route))
    page = desk.go("/fleet")
    expect(page.get_by_role("navigation").first).to_contain_text("Drains")
    assert len(waiting) == 1, "who is in is asked first, and nothing else before that is known"
    page.unroute("**/api/v1/**")  # what waits goes on
    settled(page)


def test_a_phone_that_lost_the_service_still_shows_all_of_its_header(phone: Opened) -> None:
    page = settled(phone.go("/drains"))
    page.route("**/api/v1/**", lambda route: route.abort())
    expect(page.locator(".live.lost")).to_contain_text("UTC, trying")
    assert fits(page)
    expect(page.locator("header .scope")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("rack", ["", "?rack=r1"])
def test_hosts_of_sixty_disks_are_moved_under_a_phone_s_window(phone: Opened, rack: str) -> None:
    answering(phone.page, "osds", many_disks(phone, 600, 60))
    page = settled(phone.go(f"/fleet{rack}"))
    assert fits(page)
    width = "sheet => sheet.getBoundingClientRect().width"
    cells = page.locator('.rack-grid [role="gridcell"]')
    last = cells.nth(59).evaluate("cell => parseFloat(cell.style.left)")
    assert page.locator(".map canvas").evaluate(width) > last, "the last disk of a host is drawn, too"
    assert violations(page) == []


def test_thousands_of_new_disks_are_counted_and_listed_in_the_table_only(desk: Opened) -> None:
    new = {"status": "unknown", "advice": "nothing", "drain": None, "unreadable": None}
    answering(desk.page, "osds", many_disks(desk, 6_000, 20, **new))
    page = settled(desk.go("/fleet"))
    hand = page.locator(".hand")
    hand.get_by_role("button", name="5,996 more").click()
    expect(hand.get_by_role("link", name="all 6,000 in the table")).to_be_visible()
    assert hand.locator("li").count() < 100


def test_a_button_that_is_off_says_why_to_a_finger_too(phone: Opened) -> None:
    page = settled(phone.go("/fleet"))
    page.get_by_role("button", name="Halt all drains").click(force=True)
    expect(page.locator(".banner.refused")).to_have_text(re.compile("Nothing was done: sign in to act\\."))
    expect(page.locator(".banner.refused")).to_be_in_viewport(ratio=1)
    assert phone.api("halt")["halted"] is None


def test_a_history_that_could_not_be_read_is_told_and_takes_nothing_away(desk: Opened) -> None:
    page = settled(desk.go("/events"))
    lines = page.locator(".happenings li")
    expect(lines.first).to_be_visible()
    before = lines.count()
    problem = json.dumps(
        {"title": "Service Unavailable", "status": 503, "detail": "The store cannot be read."}
    )
    kind = "application/problem+json"
    page.route(
        re.compile("/api/v1/history"),
        lambda route: route.fulfill(status=503, content_type=kind, body=problem),
    )
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # asks for everything again
    expect(page.locator(".refused-line")).to_contain_text("The store cannot be read")
    assert lines.count() == before


def test_a_dead_disk_is_not_to_be_drained_on_its_own_page_either(desk: Opened, token: str) -> None:
    body = desk.api("osds")
    dead = next(osd for osd in body["items"] if osd["device"])
    dead |= {"up": False, "in": False, "drain": None, "prescription": "Drain it now and replace the disk."}
    answering(desk.page, "osds", body)
    page = settled(desk.go(f"/devices/{dead['device']}", token))
    expect(page.locator(".device-head")).to_contain_text("Replace the disk.")
    expect(page.locator(".device-head")).not_to_contain_text("Likely")
    expect(page.get_by_role("button", name="Propose a drain")).to_have_attribute("aria-disabled", "true")


def test_disks_to_be_replaced_soon_are_marked_can_wait_in_the_fleet_and_alerts_views(desk: Opened) -> None:
    warned = [osd for osd in desk.api("osds")["items"] if osd["status"] == "warning"]
    assert warned, "the demo has disks to be replaced soon"
    page = settled(desk.go("/fleet"))
    waits = page.locator(".hand").filter(has_text="Can wait")
    expect(waits).to_contain_text("plan to replace it soon")
    expect(page.locator("h1")).to_have_text("No disk needs you")
    page = settled(desk.go("/alerts"))
    waiting = page.locator(".alert-list > li").filter(has_text="can wait")
    for osd in warned:  # disks of one host are one message
        expect(waiting.filter(has_text=f"osd.{osd['osd']} (")).to_have_count(1)
    expect(page.locator("main")).not_to_contain_text("needs a person now")


def test_a_drain_that_is_not_known_is_said_as_a_heading(desk: Opened) -> None:
    page = desk.go("/drains/nope")
    expect(page.get_by_role("heading", level=1)).to_have_text("No drain nope is known")


@pytest.mark.parametrize("path", ["/fleet", "/drains", "/events", "/alerts", "/forecast"])
def test_every_view_with_times_names_their_zone(phone: Opened, path: str) -> None:
    expect(settled(phone.go(path)).locator("main")).to_contain_text("UTC")


def test_a_view_that_was_opened_by_key_has_the_focus_and_a_question_gives_it_back(
    desk: Opened, token: str
) -> None:
    page = settled(desk.go("/alerts", token))
    silence = page.get_by_role("button", name="Silence").first
    silence.focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Leave it as it is").focus()
    page.keyboard.press("Enter")
    expect(silence).to_be_focused()
    page.locator(".alert-list a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/(devices|fleet|osds)"))
    expect(page.locator("#view")).to_be_focused()


def test_an_address_that_was_cut_off_says_that_nothing_is_there(desk: Opened) -> None:
    page = desk.go("/devices/ST4000DM000%E2%80")
    expect(page.locator("h1")).to_contain_text("No disk")


def test_the_cluster_s_view_grows_old_while_nobody_answers(desk: Opened) -> None:
    desk.page.clock.install()
    page = settled(desk.go("/fleet"))
    page.route("**/api/v1/**", lambda route: route.abort())
    page.clock.fast_forward(30_000)
    expect(page.locator(".live.lost")).to_be_visible()
    page.clock.fast_forward("01:10:00")
    expect(page.locator(".trust")).to_contain_text(re.compile("Cluster view: 1 h"))


def test_a_sign_in_that_was_waved_away_can_be_asked_for_again(desk: Opened) -> None:
    nobody = {
        "name": None,
        "scopes": [],
        "csrf_token": None,
        "ends_at": None,
        "can_read": False,
        "sign_in_url": None,
    }
    answering(desk.page, "session", nobody)
    page = desk.go("/fleet")
    expect(page.get_by_role("dialog", name="Sign in")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Sign in")).to_be_hidden()
    page.get_by_role("button", name="read only").click()
    expect(page.get_by_role("dialog", name="Sign in")).to_be_visible()


@pytest.mark.parametrize(
    ("intent", "asks", "does"),
    [
        ("fill", "Fill osd.", "Approve: move {tib:.1f} TiB onto osd."),
        ("quarantine", "the primary of no PG while it is slow?", "becomes the primary of no PG"),
    ],
)
def test_the_page_of_a_fill_or_quarantine_names_its_effect_and_no_emptying_of_a_disk(
    desk: Opened, token: str, intent: str, asks: str, does: str
) -> None:
    body = desk.api(f"drains/{desk.api('drains')['items'][0]['id']}")
    answering(desk.page, f"drains/{body['id']}", body | {"intent": intent, "state": "proposed"})
    page = settled(desk.go(f"/drains/{body['id']}", token))
    expect(page.locator("h1")).to_contain_text(asks)
    said = does.format(tib=body["progress"]["planned_bytes"] / 2**40)
    expect(page.locator(".acting-bar").get_by_role("button").first).to_contain_text(said)
    expect(page.locator("main")).not_to_contain_text(" off osd.")
    answering(desk.page, f"drains/{body['id']}", body | {"intent": intent, "state": "verified"})
    page = settled(desk.go(f"/drains/{body['id']}", token))
    expect(page.locator("main")).not_to_contain_text("To hand it over")


def test_a_disk_that_was_drained_and_replaced_asks_for_nothing_and_names_its_successor(desk: Opened) -> None:
    drained = {drain["device"] for drain in desk.api("drains")["items"] if drain["state"] == "handed_over"}
    known = {device: desk.api(f"devices/{device}") for device in drained}
    gone = next(one for one in known.values() if one["state"] == "retired")
    page = settled(desk.go(f"/devices/{gone['device']}"))
    head = page.locator(".device-head")
    expect(head).to_contain_text("It was replaced")
    expect(head.get_by_role("link", name=gone["life"]["successor"])).to_be_visible()
    expect(head).not_to_contain_text("Likely")
    expect(page.locator(".stack.first")).not_to_contain_text("within 30 days")  # its past stays on the chart
    expect(page.locator("main")).not_to_contain_text("replace it soon")


def test_a_drain_of_the_demo_took_about_as_long_as_its_plan_said(finished: Demo) -> None:
    drains = finished.get("drains")["items"]
    assert drains
    ratios = sorted(drain["duration_hours"] / drain["plan"]["eta_hours"] for drain in drains)
    # Drains that are under way at once share the pace of the cluster, which a plan made before does not know.
    assert ratios[0] > 0.5
    assert ratios[len(ratios) // 2] < 2
    assert ratios[-1] < 4


def test_a_list_that_is_cut_says_so(desk: Opened) -> None:
    first = desk.api("alerts")["items"][0]
    alerts = [first | {"at": f"2018-02-01T{n // 60:02}:{n % 60:02}:00Z", "osd": n} for n in range(400)]
    answering(desk.page, "alerts", {"items": alerts, "next": None})
    ended = desk.api("drains")["items"][0]
    drains = [ended | {"id": f"D-{n}"} for n in range(130)]
    answering(desk.page, "drains", {"items": drains, "next": None})
    expect(settled(desk.go("/alerts")).locator("main")).to_contain_text("200 of 400 announcements of disks")
    expect(settled(desk.go("/drains")).locator("main")).to_contain_text("Ended, the newest 100 of 130")


@pytest.mark.parametrize(("hours", "told"), [(11.2, "back in about 11 h and"), (None, "back and restores")])
def test_a_cancel_is_asked_for_with_the_hours_that_the_service_says_it_takes(
    desk: Opened, token: str, hours: float | None, told: str
) -> None:
    body = desk.api(f"drains/{desk.api('drains')['items'][0]['id']}")
    answering(desk.page, f"drains/{body['id']}", body | {"state": "paused", "cancel_hours": hours})
    page = settled(desk.go(f"/drains/{body['id']}", token))
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog").locator(".question")).to_contain_text(told)


def test_a_drain_that_failed_can_be_resumed_once_its_cause_is_cured(desk: Opened, token: str) -> None:
    body = desk.api(f"drains/{desk.api('drains')['items'][0]['id']}")
    why = "the cluster refused 5 times running: EPERM. Cure it, then resume or cancel."
    answering(desk.page, f"drains/{body['id']}", body | {"state": "failed", "end_reason": why})
    page = settled(desk.go(f"/drains/{body['id']}", token))
    page.get_by_role("button", name="Resume").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("EPERM")
    with page.expect_request(re.compile(rf"/drains/{body['id']}/resume$")):
        question.get_by_role("button", name=re.compile("^Resume")).click()


def test_a_verified_disk_is_handed_over_by_the_command_that_asks_once_more(desk: Opened, token: str) -> None:
    body = desk.api(f"drains/{desk.api('drains')['items'][0]['id']}")
    answering(desk.page, f"drains/{body['id']}", body | {"state": "verified"})
    page = settled(desk.go(f"/drains/{body['id']}", token))
    expect(page.locator(".hand-over li").first).to_contain_text(f"predrain drain hand-over {body['id']}")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("q=stor-99", 'No disk is called "stor-99".'),
        ("by=latency&status=draining", 'No disk is "draining".'),
        ("status=down&q=stor-01&table=1", 'No disk is down and called "stor-01".'),
    ],
)
def test_a_link_to_what_is_gone_says_that_no_disk_is_shown_and_leads_back_to_all(
    desk: Opened, asked: str, told: str
) -> None:
    page = settled(desk.go(f"/fleet?{asked}"))
    expect(page.locator("main")).to_contain_text(told)
    page.get_by_role("link", name="Show all disks").click()
    expect(page.locator("main")).not_to_contain_text("No disk is")


def test_a_cluster_that_does_not_answer_is_no_halt_that_a_person_could_lift(desk: Opened, token: str) -> None:
    why = "whether the cluster says halt cannot be read (no answer from the cluster)"
    answering(desk.page, "status", desk.api("status") | {"halted": why, "halt_passes": True, "demo": None})
    answering(desk.page, "osds", desk.api("osds") | {"items": []})
    page = settled(desk.go("/fleet", token))
    expect(page.locator(".banner.halted")).to_contain_text("go on by themselves when it answers")
    expect(page.locator("main")).not_to_contain_text("until a person lifts this")
    expect(page.get_by_role("button", name="Lift the halt")).to_have_count(0)
    expect(page.locator("h1")).to_have_text("The cluster has not answered yet")
    expect(page.locator("main")).not_to_contain_text("[ceph]")
    page = settled(desk.go("/osds/3"))
    expect(page.locator("main")).not_to_contain_text("The cluster has no such OSD")


def test_an_empty_install_says_how_a_host_is_enrolled(phone: Opened) -> None:
    for path in ("osds", "outlooks", "devices"):
        answering(phone.page, path, phone.api(path) | {"items": [], "next": None})
    page = settled(phone.go("/fleet"))
    for command in ("predrain token enrol HOST", "predrain collect --enrol TOKEN", "url", "[ceph]"):
        expect(page.locator(".empty")).to_contain_text(command)
    assert fits(page)


def test_a_chart_s_last_value_stays_within_its_card_on_a_phone(phone: Opened) -> None:
    hardly = min(phone.api("osds")["items"], key=lambda osd: osd["p_fail_30d"] or 1)
    page = settled(phone.go(f"/devices/{hardly['device']}"))
    value = page.locator(".history .value").first
    expect(value).to_contain_text("0.1 %")
    right = "one => one.getBoundingClientRect().right"
    assert value.evaluate(right) <= page.locator(".history .lanes").evaluate(right)
