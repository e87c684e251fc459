"""Self-tests and the light of a slot on the page, in a real browser, with a host's collector that asks for work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from predrain.data.clock import SystemClock
from predrain.data.disk_request import DiskPermission, derive_host_key
from predrain.data.ids import HostName
from predrain.service.storage.record_sender import RecordSender
from tests.attack.target import Target, running_service
from tests.service.asking_host import BOTH, SDA, SDB, Host, plant_slot
from tests.system.browsing import DESK, PHONE, Opened, fits, picture, settled, violations

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
SIGNING_KEY = "signing-key-of-this-test-0123456789abcdef"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("self-tests")
    key = folder / "key"
    key.write_text(SIGNING_KEY)
    key.chmod(0o600)
    with running_service(folder, settings=f'[ceph]\nsigning_key = "{key}"\n') as running:
        yield running


@pytest.fixture(params=[DESK, PHONE], ids=["desk", "phone"])
def opened(browser: Browser, service: Target, request: pytest.FixtureRequest) -> Iterator[Opened]:
    size: ViewportSize = request.param
    context = browser.new_context(viewport=size, has_touch=size is PHONE, is_mobile=size is PHONE)
    yield Opened(context, f"http://{service.address}")
    context.close()


@contextmanager
def asking_host(
    service: Target, folder: Path, name: str, allow: tuple[DiskPermission, ...] = BOTH
) -> Iterator[Host]:
    """A host that has delivered its readings and asks for work all the time."""
    plant_slot(folder / "root", "sda", "Slot 05")
    host = Host(
        folder, SystemClock(), derive_host_key(SIGNING_KEY, HostName(name)), f"http://{service.address}",
        name=HostName(name), allow=allow, token=service.token,
        disks=[replace(one, serial=f"{one.serial}-{name}") for one in (SDA, SDB)],
    )  # fmt: skip
    sender = RecordSender("test", SystemClock())
    for reading in host.readings:
        service.post("/api/v1/readings", b"[%b]" % sender.encode_envelope(reading), token=service.token)
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.2):
            host.ask_until_idle()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield host
    finally:
        over.set()
        thread.join()


def card(page: Page) -> Any:
    return page.get_by_role("region", name="Self-tests and light")


def check_shape(page: Page) -> None:
    """Nothing stands out of the window, and axe finds nothing."""
    assert fits(page)
    assert violations(page) == []


def test_a_person_tests_a_disk_and_lights_its_slot(
    opened: Opened, service: Target, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    shape = request.node.callspec.id
    with asking_host(service, tmp_path, f"stor-{shape}") as host:
        device = host.device("/dev/sda")
        opened.go("/alerts", service.token)
        page = settled(opened.go(f"/devices/{device}"))
        expect(card(page).get_by_role("button", name="Long test")).not_to_have_attribute(
            "aria-disabled", "true"
        )
        check_shape(page)
        assert host.asked_tests() == [], "a look asks for nothing"
        card(page).get_by_role("button", name="Long test").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("reads its whole surface")
        check_shape(page)
        dialog.get_by_role("button", name="Leave it as it is").click()
        assert host.asked_tests() == []
        card(page).get_by_role("button", name="Long test").click()
        dialog.get_by_role("button", name="Start the long test").click()
        expect(card(page)).to_contain_text("The test has started.")
        expect(card(page)).to_contain_text("A self-test runs on the disk already.")
        card(page).get_by_role("button", name="Light on").click()
        expect(card(page)).to_contain_text("The light is switched.")
        expect(card(page)).to_contain_text("enclosure slot: Slot 05")
        check_shape(page)
        picture(page, f"self-tests-{shape}")
        assert host.asked_tests() == ["-t long --json=c -d sat /dev/sda"]
    assert opened.complaints == []


def test_the_words_to_add_on_the_host_stand_beside_the_buttons_that_are_off(
    opened: Opened, service: Target, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    name = f"quiet-{request.node.callspec.id}"
    with asking_host(service, tmp_path, name, allow=()) as host:
        page = settled(opened.go(f"/devices/{host.device('/dev/sdb')}", service.token))
        expect(card(page).get_by_label("Reasons against")).to_contain_text(
            f"{name} does not allow self-tests"
        )
        for button in ("Short test", "Long test", "Light on", "Light off"):
            expect(card(page).get_by_role("button", name=button)).to_have_attribute("aria-disabled", "true")
        check_shape(page)
