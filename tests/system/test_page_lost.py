"""A browser that lost its service for an hour: the page says how old its data is, and then comes back by itself and
fetches everything again.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Request, expect

from predrain.data.clock import SystemClock
from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Counters, Identity, Protocol, Reading, Smart
from predrain.service.storage.record_sender import RecordSender
from tests.deadlines import idle_seconds
from tests.ports import hold_port
from tests.system.browsing import DESK, Opened, chromium

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]
PREDRAIN = Path(sys.executable).parent / "predrain"
PATIENCE = 120.0


class Service:
    """`predrain up` on one port, which can die and come back."""

    def __init__(self, folder: Path) -> None:
        self._port = hold_port()
        self._folder = folder
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Up, and answering."""
        command = [PREDRAIN, "up", "--state", self._folder / "state", "--port", str(self._port)]
        with (self._folder / "said").open("ab") as said:
            self._process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        end = idle_seconds() + PATIENCE
        while idle_seconds() < end:
            try:
                urllib.request.urlopen(f"{self.url}/api/v1/status", timeout=10).close()
                return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        pytest.fail((self._folder / "said").read_text(errors="replace")[-2000:])

    def die(self) -> None:
        """At once, as when the power fails."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(30)

    def read(self, serial: str) -> None:
        """A host has read a disk."""
        now = datetime.now(UTC)
        identity = Identity(model="ST4000DM000", serial=serial, rotation_rpm=5900)
        seen = Smart(Protocol.ATA, identity, True, counters=Counters(pending=0), power_on_hours=20_000)
        disk = Reading(DeviceId(f"ST4000DM000_{serial}"), HostName("stor-01"), now, now, seen)
        request = urllib.request.Request(
            f"{self.url}/api/v1/readings",
            b"[" + RecordSender("test", SystemClock()).encode_envelope(disk) + b"]",
            {
                "Authorization": f"Bearer {(self._folder / 'state' / 'token').read_text().strip()}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)["accepted"] == 1


def test_an_hour_without_the_service_is_told_and_then_everything_is_fetched_anew(tmp_path: Path) -> None:
    service = Service(tmp_path)
    service.start()
    try:
        service.read("FIRST")
        with chromium() as browser:
            opened = Opened(browser.new_context(viewport=DESK), service.url)
            page = opened.page
            page.clock.install()
            opened.go("/fleet")
            rows = page.locator("tbody tr")
            expect(rows.filter(has_text="FIRST")).to_be_visible(timeout=60_000)

            service.die()
            lost = page.locator(".live.lost")
            expect(lost).to_contain_text("Not live", timeout=60_000)
            expect(rows.filter(has_text="FIRST")).to_be_visible()
            page.clock.fast_forward("01:10:00")
            expect(lost).to_contain_text("Not live for 1 h", timeout=60_000)
            expect(lost).to_contain_text("data of")

            asked: list[Request] = []
            page.on("request", lambda request: asked.append(request))
            service.start()
            service.read("SECOND")
            page.clock.fast_forward(60_000)
            expect(page.locator(".live.live")).to_be_visible(timeout=120_000)
            expect(rows.filter(has_text="SECOND")).to_be_visible(timeout=60_000)
            first = next(one for one in asked if one.url.endswith("/api/v1/status") and one.response())
            assert "if-none-match" not in first.headers, "what is an hour old is not asked for by its name"
            assert not any("since=" in one.url for one in asked[: asked.index(first)])
    finally:
        service.die()
