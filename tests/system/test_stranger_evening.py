"""A stranger's evening: from the installed command and a host's disks to a replaced disk and the month as a file.

A person who has never seen predrain types the commands of the how-to pages and uses the page in a real browser. The
disks answer what real drives answered; Slack is a receiver that checks each body by Slack's published rules; the
cluster is a recorded one that obeys.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.collector.fake_smartctl import FakeSmartctl, every_kind
from tests.deadlines import idle_seconds
from tests.service.notifications.test_receivers import Receiver, serving
from tests.system.browsing import (
    DESK,
    PHONE,
    Opened,
    fits,
    list_clipped_texts,
    picture,
    settled,
    unreadable_text,
    violations,
)
from tests.system.ceph.ports import reserve_port

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
PREDRAIN = Path(sys.executable).with_name("predrain")
RECORDING = ROOT / "tests" / "data" / "recorded" / "tentacle-clean.zip"
HOST = "stor-01"
OSD = "osd.5"
PATIENCE = 180.0
"""Idle seconds for each thing that is waited for; a message alone gathers for a minute."""


def wait_until(found: Callable[[], Any], what: str) -> Any:
    """Ask until the answer is true, and return it."""
    end = idle_seconds() + PATIENCE
    while not (answer := found()):
        assert idle_seconds() < end, f"{what} did not come"
        time.sleep(0.3)
    return answer


@dataclass
class Evening:
    """A terminal in `folder`, and what was started there."""

    folder: Path
    port: int
    slack_port: int
    disks: FakeSmartctl
    cluster: str = ""
    """The table `[ceph]`, once there is one."""
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return (self.folder / "state" / "token").read_text().strip()

    def get(self, path: str) -> Any:
        answer = httpx2.get(f"{self.url}/api/v1/{path}", timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def type(self, *words: str, config: str = "predrain.toml") -> str:
        """Type a command; return what it prints."""
        command = [PREDRAIN, *words, "--config", self.folder / config]
        ended = subprocess.run(command, capture_output=True, text=True, env=bare_environment(), check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def write_settings(self) -> None:
        """The settings of the service, as the how-to pages give them, and those of the host's collector."""
        (self.folder / "slack-url").write_text(f"http://127.0.0.1:{self.slack_port}/services/T0/B0/x\n")
        (self.folder / "predrain.toml").write_text(
            f'[service]\nport = {self.port}\nstate = "{self.folder}/state"\nexternal_url = "{self.url}"\n'
            f'[slack.ops]\nurl_file = "{self.folder}/slack-url"\nallow_private_address = true\n{self.cluster}'
        )
        (self.folder / "collector.toml").write_text(
            f'[service]\nstate = "{self.folder}/collector"\n[collector]\nurl = "{self.url}"\n'
            f'token_file = "{self.folder}/collector-token"\nhost = "{HOST}"\nallow = ["selftest"]\n'
            f'smartctl = "{self.disks.program}"\nreading_interval_minutes = 1\nparallel = 8\n'
        )

    def start(self, name: str, *words: str, config: str = "predrain.toml") -> None:
        """Start a command that goes on by itself."""
        command = [PREDRAIN, *words, "--config", self.folder / config]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=ROOT, env=bare_environment()
            )

    def start_service(self) -> None:
        self.start("service", "up")

        def answers() -> bool:
            try:
                return httpx2.get(f"{self.url}/readyz", timeout=20).status_code in (200, 503)
            except httpx2.TransportError:
                return False

        wait_until(answers, "the service")

    def stop(self, name: str) -> None:
        process = self.running.pop(name)
        process.terminate()
        process.wait(60)


def bare_environment() -> dict[str, str]:
    """Return this environment without settings of predrain, with this source tree."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREDRAIN_")}
    return {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}


@pytest.fixture
def slack() -> Receiver:
    return Receiver("slack")


@pytest.fixture
def evening(tmp_path: Path, slack: Receiver) -> Iterator[Evening]:
    port, held = reserve_port(31000, 39000)
    with held, serving(slack) as slack_port:
        made = Evening(tmp_path, port, slack_port, FakeSmartctl(tmp_path / "disks", every_kind()))
        made.write_settings()
        yield made
        for name in list(made.running):
            made.stop(name)


@pytest.fixture
def opened(browser: Browser, evening: Evening) -> Iterator[Opened]:
    context = browser.new_context(viewport=DESK, reduced_motion="reduce", accept_downloads=True)
    yield Opened(context, evening.url)
    context.close()


def check_view(page: Page) -> None:
    """Nothing is cut off on a phone, nothing reads like a program's word, and axe finds nothing, in both themes."""
    settled(page)
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        for size in (PHONE, DESK):
            page.set_viewport_size(size)
            # Charts follow the width of their frame a moment later.
            wait_until(lambda: fits(page), f"a page as narrow as the window ({page.url})")
            wait_until(lambda: not list_clipped_texts(page), f"whole texts ({list_clipped_texts(page)})")
            assert violations(page) == []
    assert unreadable_text(page) == [], page.url


def enrol_host(evening: Evening) -> None:
    """Give the host its token, and start its collector."""
    host, once = evening.type("token", "enrol", HOST).strip().split("\t")
    assert host == HOST
    evening.type("collect", "--enrol", once, config="collector.toml")
    evening.start("collector", "collect", config="collector.toml")
    many = len([disk for disk in evening.disks.disks if disk.listed])
    wait_until(lambda: len(evening.get("devices?limit=1000")["items"]) == many, f"{many} disks")


def find_sick_disk(evening: Evening, opened: Opened) -> str:
    """Find the disk that predrain calls bad in the table, and open its page. Return its device id."""
    wait_until(lambda: any(one["status"] == "bad" for one in evening.get("outlooks")["items"]), "a verdict")
    page = settled(opened.go("/", evening.token))
    expect(page.locator("h1")).to_have_text(re.compile("need"), timeout=60_000)
    first = page.locator(".sheet-table tbody tr").first
    expect(first.locator(".col-severity")).to_contain_text("bad")
    check_view(page)
    picture(page, "evening-table")
    first.locator(".col-disk a").click()
    return page.url.rsplit("/", 1)[1]


def understand(page: Page) -> None:
    """Read why on the page of the disk."""
    expect(page.locator(".reasons li").first).to_contain_text("FAILED")
    expect(page.locator(".device-head")).to_contain_text("replace the disk")
    check_view(page)
    picture(page, "evening-disk")


def start_self_test(evening: Evening, page: Page) -> None:
    card = page.get_by_role("region", name="Self-tests and light")
    short = card.get_by_role("button", name="Short test")
    expect(short).not_to_have_attribute("aria-disabled", "true", timeout=60_000)
    short.click()
    expect(card).to_contain_text("The test has started.", timeout=90_000)
    (asked,) = [one for one in evening.disks.asked() if one.startswith("-t")]
    assert asked.startswith("-t short ")


def read_message(slack: Receiver, device: str) -> str:
    """Wait for Slack's message about the disk; return the address of its first link."""
    said = wait_until(
        lambda: next((text for _, _, body in slack.got if device in (text := json.dumps(body))), None),
        "the message",
    )
    assert slack.broken == []
    links = re.findall(r"<(http[^|>]+)\|", said)
    assert len(links) == 2
    assert links[1].endswith("/drains?ask=halt")
    return str(links[0])


def silence_it(evening: Evening, page: Page, link: str) -> None:
    """Follow the link of the message, and silence the cause."""
    page.goto(link)
    expect(page.locator("h1")).to_be_visible()
    page.get_by_role("link", name="Alerts").first.click()
    cause = page.locator(".alert-list > li").filter(has_text=HOST).first
    cause.get_by_role("button", name="Silence").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason of the silence").fill("the swap is ordered")
    dialog.get_by_role("button", name="Silence it").click()
    expect(cause).to_contain_text("silenced")
    check_view(page)
    (made,) = evening.get("silences")["items"]
    assert made["reason"] == "the swap is ordered"


def record_cluster(folder: Path, device: str, block: str) -> Path:
    """A recording in which the disk is that of OSD on the host."""
    made = folder / "cluster.zip"
    names = {b"MINI_HDD4T_Z0000005": device.encode(), b"host2": HOST.encode(), b"loop5": block.encode()}
    with zipfile.ZipFile(RECORDING) as whole, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as copy:
        for name in whole.namelist():
            raw = whole.read(name)
            for old, new in names.items():
                raw = raw.replace(old, new) if name.endswith(".json") else raw
            copy.writestr(name, raw)
    return made


def point_at_cluster(evening: Evening, device: str, block: str) -> None:
    """Add the table of the cluster, and start the service again."""
    recording = record_cluster(evening.folder, device, block)
    (evening.folder / "ceph.conf").touch()
    played = [sys.executable, "-m", "tests.service.cluster_moved", str(recording)]
    evening.cluster = (
        f'[ceph]\nconf = "{evening.folder}/ceph.conf"\n'
        f"python = {json.dumps([*played, f'{evening.folder}/shared.json'])}\n"
        "[policy]\ntick_seconds = 1\nmgr_stats_period_seconds = 1\n"
    )
    evening.stop("service")
    evening.write_settings()
    evening.start_service()
    wait_until(lambda: len(evening.get("osds")["items"]) == 8, "the OSDs")


def review_and_approve(evening: Evening, opened: Opened, device: str) -> str:
    """Propose the drain on the page of the disk, read its plan, approve it. Return the id of the drain."""
    page = settled(opened.go(f"/devices/{device}", evening.token))
    expect(page.locator("h1")).to_contain_text(OSD)
    page.get_by_role("button", name="Propose a drain").click()
    page.get_by_role("link", name="Review drain").click()
    expect(page.get_by_text("If you do nothing")).to_be_visible()
    check_view(page)
    picture(page, "evening-review")
    (drain,) = evening.get("drains")["items"]
    assert drain["state"] == "proposed"
    page.get_by_role("button", name=re.compile(rf"^Approve: move .* off {re.escape(OSD)}$")).click()
    wait_until(
        lambda: evening.get(f"drains/{drain['id']}")["progress"]["moved_pgs"] > 0, "the first PG that moved"
    )
    return str(drain["id"])


def see_it_end(evening: Evening, page: Page, drain: str) -> None:
    wait_until(lambda: evening.get(f"drains/{drain}")["state"] == "verified", "the end of the drain")
    expect(page.locator(".hand-over li").first).to_contain_text(f"predrain drain hand-over {drain}")
    check_view(page)
    picture(page, "evening-drained")


def replace_disk(evening: Evening, opened: Opened, device: str, drain: str) -> None:
    """Ask once more whether the disk may go, as the page says, and note that it was replaced."""
    told = evening.type("drain", "hand-over", drain)
    assert f"Replace {device} in {HOST}" in " ".join(told.split())
    page = settled(opened.go(f"/devices/{device}"))
    page.get_by_role("button", name="It was replaced").click()
    page.get_by_role("dialog").get_by_role("button", name="Note: replaced").click()
    wait_until(
        lambda: [one["fate"] for one in evening.get(f"devices/{device}")["outcomes"]] == ["replaced"],
        "the outcome",
    )


def export_month(evening: Evening, opened: Opened, drain: str) -> None:
    """Save the present month as the page and the command write it."""
    month = evening.get("status")["now"][:7]
    page = settled(opened.go(f"/report?month={month}"))
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save as CSV").click()
    check_view(page)
    rows = list(csv.DictReader(io.StringIO(Path(saving.value.path()).read_text())))
    (moved,) = [row for row in rows if row["drain"] == drain and row["moved (bytes)"]]
    assert int(moved["moved (bytes)"]) > 0
    typed = list(csv.DictReader(io.StringIO(evening.type("report", month, "--csv"))))
    assert [(row["at (UTC)"], row["drain"]) for row in typed] == [
        (row["at (UTC)"], row["drain"]) for row in rows
    ]


def test_a_stranger_drains_and_replaces_a_sick_disk_on_the_first_evening(
    evening: Evening, opened: Opened, slack: Receiver
) -> None:
    evening.start_service()
    enrol_host(evening)
    device = find_sick_disk(evening, opened)
    page = settled(opened.page)
    understand(page)
    start_self_test(evening, page)
    silence_it(evening, page, read_message(slack, device))
    point_at_cluster(evening, device, "sdy")
    drain = review_and_approve(evening, opened, quote(device))
    see_it_end(evening, opened.page, drain)
    replace_disk(evening, opened, device, drain)
    export_month(evening, opened, drain)
    assert slack.broken == []
    # While the service starts again, the page that stays open asks it in vain.
    assert [said for said in opened.complaints if "Failed to load resource: net::ERR_" not in said] == []
