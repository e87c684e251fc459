"""A drain that cannot go on by itself: its ways out and who insists, on the page in a real browser."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.system.browsing import Opened, answering, fits, settled, unreadable_text, violations

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

WAYS = [
    {"way": "make_room", "sentence": "Free 12 GiB on osd.1: delete data, or add OSDs."},
    {"way": "stay_drained", "sentence": "Take back the cancel: what has moved stays where it is."},
    {"way": "give_up_cancel", "sentence": "Give up the cancel: upmaps and weights stay as they are."},
]
GUARDS = [
    {"code": "window", "ok": False, "sentence": "It is 12:10.", "insistable": True, "overruled": False},
    {"code": "space", "ok": False, "sentence": "osd.1 is full.", "insistable": False, "overruled": False},
]


def held(opened: Opened, **changed: Any) -> dict[str, Any]:
    """A drain of the demo as it looks while it is held."""
    known = next(drain for drain in opened.api("drains")["items"] if drain["plan"])
    whole: dict[str, Any] = opened.api(f"drains/{known['id']}")
    return whole | {"state": "holding", "held_by": ["It holds."], "guards": GUARDS} | changed


def sent_to(page: Page, route: str) -> list[Any]:
    """Catch the page's requests to `route` before they reach the service; return the list of their bodies."""
    sent: list[Any] = []

    def hear(asked: Route) -> None:
        sent.append(asked.request.post_data_json)
        asked.fulfill(status=200, content_type="application/json", body=json.dumps({}))

    page.route(re.compile(rf"/api/v1/drains/[^/]+/{route}$"), hear)
    return sent


def make_admin(page: Page) -> None:
    """Let each person who signs in have the scope admin, as far as the page knows."""

    def answer(asked: Route) -> None:
        if asked.request.method != "GET":
            asked.continue_()
            return
        said = asked.fetch()
        asked.fulfill(response=said, json=said.json() | {"scopes": ["admin"]})

    page.route(re.compile(r"/api/v1/session$"), answer)


def test_the_insist_button_is_off_for_a_person_without_scope_admin_and_names_that_scope(
    desk: Opened, token: str
) -> None:
    drain = held(desk)
    answering(desk.page, "drains/[^/]+", drain)
    page = settled(desk.go(f"/drains/{drain['id']}", token))
    button = page.get_by_role("button", name="Insist")
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(button).to_have_attribute("title", "demo has no scope admin")


def test_a_stuck_cancel_offers_its_ways_out_and_the_last_one_wants_the_osd_typed(
    desk: Opened, token: str
) -> None:
    drain = held(desk, state="cancelling", ways_out=WAYS)
    target = ", ".join(f"osd.{osd}" for osd in drain["osds"])
    answering(desk.page, "drains/[^/]+", drain)
    make_admin(desk.page)
    stayed, given_up = sent_to(desk.page, "stay_drained"), sent_to(desk.page, "give_up_cancel")
    page = settled(desk.go(f"/drains/{drain['id']}", token))
    ways = page.get_by_role("region", name="Ways out")
    expect(ways.locator("li")).to_have_count(3)
    expect(ways.get_by_role("button")).to_have_count(2)
    ways.get_by_role("button", name="Stay drained").click()
    dialog = page.get_by_role("dialog", name="Stay drained?")
    expect(dialog).to_contain_text("what has moved stays where it is")
    assert violations(page) == []
    dialog.get_by_role("button", name="Stay drained").click()
    expect(page.locator(".banner.done")).to_contain_text("The cancel of")
    ways.get_by_role("button", name="Give up the cancel").click()
    dialog = page.get_by_role("dialog", name="Give up the cancel?")
    yes = dialog.get_by_role("button", name="Give up the cancel")
    expect(yes).to_be_disabled()
    dialog.get_by_role("textbox").fill(target)
    yes.click()
    expect(page.locator(".banner.done")).to_contain_text("Given up")
    assert (len(stayed), len(given_up)) == (1, 1)
    assert unreadable_text(page) == []
    assert desk.complaints == []


def test_an_insistence_requires_chosen_guards_a_reason_and_the_typed_osd(desk: Opened, token: str) -> None:
    drain = held(desk)
    answering(desk.page, "drains/[^/]+", drain)
    make_admin(desk.page)
    sent = sent_to(desk.page, "insist")
    page = settled(desk.go(f"/drains/{drain['id']}", token))
    page.get_by_role("button", name="Insist").click()
    typed = f"osd.{drain['osds'][0]}"
    dialog = page.get_by_role("dialog", name=f"Insist on the drain of {typed}?")
    expect(dialog.get_by_role("checkbox")).to_have_count(1)
    expect(dialog).not_to_contain_text("osd.1 is full")
    yes = dialog.get_by_role("button", name="Insist for 30 minutes")
    dialog.get_by_label(f"Type {typed} to go on").fill(typed)
    expect(yes).to_be_disabled()
    dialog.get_by_role("checkbox").check()
    expect(yes).to_be_disabled()
    dialog.get_by_label("Why").fill("it dies tonight")
    dialog.get_by_label("For how many minutes").select_option("15")
    assert violations(page) == []
    dialog.get_by_role("button", name="Insist for 15 minutes").click()
    expect(page.locator(".banner.done")).to_contain_text("window holds this drain no more, for 15 minutes")
    assert sent == [{"guards": ["window"], "reason": "it dies tonight", "minutes": 15, "confirm": typed}]


def test_an_insistence_is_shown_while_it_holds_with_who_why_and_until_when(desk: Opened) -> None:
    said = {"guards": ["window"], "by": "ada", "reason": "it dies tonight", "until": "2018-03-01T21:40:00Z"}
    overruled = [GUARDS[0] | {"overruled": True}, GUARDS[1]]
    drain = held(desk, insistence=said, guards=overruled)
    answering(desk.page, "drains/[^/]+", drain)
    page = settled(desk.go(f"/drains/{drain['id']}"))
    expect(page.locator(".banner.insisting")).to_contain_text(
        "ada insists past window until 21:40 UTC at most: It dies tonight."
    )
    expect(page.get_by_role("button", name="Insist")).to_have_count(0)
    assert violations(page) == []


def boxes(page: Page) -> list[dict[str, Any]]:
    """Every text of the drain's chart that is a label of holds, and the texts that it overlaps."""
    found: list[dict[str, Any]] = page.evaluate(
        """() => {
            const texts = [...document.querySelectorAll(".lanes svg text")];
            const box = (text) => text.getBoundingClientRect();
            const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
            return texts.filter((text) => text.classList.contains("text-warning")).map((label) => ({
                text: [...label.childNodes].at(-1).textContent,
                whole: label.querySelector("title").textContent,
                over: texts
                    .filter((text) => text !== label && meet(box(text), box(label)))
                    .map((text) => text.textContent),
                right: box(label).right,
            }));
        }"""
    )
    return found


@pytest.mark.parametrize("holds", [1, 3, 9, 40])
@pytest.mark.parametrize("screen", ["desk", "phone"])
def test_labels_of_holds_never_overlap_and_their_whole_text_is_in_a_list_for_keyboard_and_screen_reader(
    screen: str, holds: int, request: pytest.FixtureRequest
) -> None:
    opened: Opened = request.getfixturevalue(screen)
    begun = 1_520_000_000_000
    minutes = [begun + 60_000 * minute for minute in range(601)]
    whys = [
        f"clients wait 1.3{number} times as long as before the drain, limit 1.2" for number in range(holds)
    ]
    told = [
        {"from": iso(begun + 60_000 * (40 + number * 500 // holds)), "reason": why}
        | {"to": iso(begun + 60_000 * (50 + number * 500 // holds))}
        for number, why in enumerate(whys)
    ]
    timeline = {
        "t": minutes,
        "bytes_left": [(601 - minute) << 32 for minute in range(601)],
        "in_flight": [minute % 5 for minute in range(601)],
        "latency_ratio": [1.1] * 601,
        "holds": told,
    }
    drain = held(opened, state="paused", held_by=[], guards=[], timeline=timeline)
    answering(opened.page, "drains/[^/]+", drain)
    page = settled(opened.go(f"/drains/{drain['id']}"))
    expect(page.locator(".lanes svg text.text-warning").first).to_be_visible()
    labels = boxes(page)
    size = page.viewport_size
    assert size is not None
    assert [label["over"] for label in labels] == [[]] * len(labels)
    assert all(label["right"] <= size["width"] for label in labels)
    assert all(any(why in label["whole"] for label in labels) for why in whys)
    summary = page.locator("summary", has_text="Held ")
    summary.focus()
    page.keyboard.press("Enter")
    listed = page.locator("details[open] .log li")
    expect(listed).to_have_count(holds)
    for why in (whys[0], whys[-1]):
        expect(listed.filter(has_text=why)).to_be_visible()
    assert fits(page)
    assert violations(page) == []


def iso(milliseconds: int) -> str:
    """Return the instant as REST writes it."""
    return datetime.fromtimestamp(milliseconds / 1_000, UTC).isoformat()
