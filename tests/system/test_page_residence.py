"""A disk that two hosts name, in a real browser: the doubt is shown, and a person says there which host has it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from predrain.data.clock import SystemClock
from predrain.data.ids import HostName
from predrain.service.storage.record_sender import RecordSender
from tests.attack.target import Target, running_service
from tests.service.conftest import smart_reading
from tests.system.browsing import DESK, PHONE, Opened, fits, picture, settled, violations

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

HOMES = ("stor-01", "stor-02-with-a-name-as-long-as-data-centres-give-them.rack-17.example.org")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A service without a cluster, where only a person can settle which host has a disk."""
    with running_service(tmp_path_factory.mktemp("residence")) as running:
        yield running


@pytest.fixture(params=[DESK, PHONE], ids=["desk", "phone"])
def opened(browser: Browser, service: Target, request: pytest.FixtureRequest) -> Iterator[Opened]:
    size: ViewportSize = request.param
    context = browser.new_context(viewport=size, has_touch=size is PHONE, is_mobile=size is PHONE)
    yield Opened(context, f"http://{service.address}")
    context.close()


def deliver(service: Target, serial: str) -> str:
    """Readings of one disk by two hosts in turn; the disk's id."""
    sender, now = RecordSender("test", SystemClock()), datetime.now(UTC)
    for ago, host in ((50, HOMES[0]), (40, HOMES[1]), (30, HOMES[0]), (20, HOMES[1])):
        reading = replace(smart_reading(serial, now - timedelta(seconds=ago)), host=HostName(host))
        body = b"[%b]" % sender.encode_envelope(reading)
        answer = service.post("/api/v1/readings", body, token=service.token)
        assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["accepted"] == 1
    return reading.device


def ask_home(service: Target, device: str) -> dict[str, Any]:
    """Return the answer of REST about the host that has the disk."""
    request = urllib.request.Request(
        f"http://{service.address}/api/v1/devices/{device}/host",
        headers={"Authorization": f"Bearer {service.token}"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def card(page: Page) -> Any:
    return page.get_by_role("region", name="Which host has the disk")


def check_shape(page: Page) -> None:
    """Nothing stands out of the window, and axe finds nothing."""
    assert fits(page)
    assert violations(page) == []


def test_a_person_says_on_the_page_which_host_has_a_disk_that_two_hosts_name(
    opened: Opened, service: Target, request: pytest.FixtureRequest
) -> None:
    shape = request.node.callspec.id
    device = deliver(service, f"TWICE-{shape}")
    opened.go("/alerts", service.token)
    cause = opened.page.locator(".alert-list > li", has_text=device)
    expect(cause).to_be_visible()
    page = settled(opened.go(f"/devices/{device}"))
    expect(card(page)).to_contain_text(f"{HOMES[0]} and {HOMES[1]} name this disk at the same time")
    check_shape(page)
    picture(page, f"residence-{shape}")

    button = card(page).get_by_role("button", name=f"It is in {HOMES[1]}")
    if shape == "phone":
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 44
    button.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"belongs to {HOMES[1]} from then on")
    check_shape(page)
    picture(page, f"residence-question-{shape}")
    dialog.get_by_role("button", name="Leave it as it is").click()
    assert ask_home(service, device)["state"] == "contested", "nothing was said"

    button.click()
    dialog.get_by_role("button", name=f"It is in {HOMES[1]}").click()
    expect(page.locator(".banner")).to_contain_text(f"Noted: {device} is in {HOMES[1]}")
    expect(card(page)).to_contain_text(f"The disk is in {HOMES[1]}")
    expect(card(page)).to_contain_text("A person said so")
    check_shape(page)
    picture(page, f"residence-settled-{shape}")
    told = ask_home(service, device)
    assert (told["state"], told["host"], told["by"]) == ("settled", HOMES[1], "person")

    card(page).get_by_role("button", name=f"It is in {HOMES[0]}").click()
    dialog.get_by_role("button", name=f"It is in {HOMES[0]}").click()
    expect(card(page)).to_contain_text(f"The disk is in {HOMES[0]}")
    assert opened.complaints == []


def test_the_page_of_a_history_that_is_kept_apart_leads_to_the_disk_and_has_the_same_buttons(
    opened: Opened, service: Target, request: pytest.FixtureRequest
) -> None:
    device = deliver(service, f"APART-{request.node.callspec.id}")
    page = settled(opened.go(f"/devices/{device}", service.token))
    card(page).get_by_role("link", name=HOMES[1]).click()
    expect(page).to_have_url(opened.address(f"/devices/{device}%20on%20{HOMES[1]}"))
    expect(card(page)).to_contain_text(f"This page shows what {HOMES[1]} sends")
    expect(card(page).get_by_role("button")).to_have_count(2)
    check_shape(page)
    card(page).get_by_role("link", name="the disk's own page").click()
    expect(page).to_have_url(opened.address(f"/devices/{device}"))


def test_a_visitor_without_scope_act_is_shown_why_the_buttons_are_off(
    opened: Opened, service: Target
) -> None:
    device = deliver(service, "LOOKED-AT")
    page = settled(opened.go(f"/devices/{device}"))
    button = card(page).get_by_role("button", name=f"It is in {HOMES[0]}")
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(card(page).locator(".why-off")).not_to_be_empty()
