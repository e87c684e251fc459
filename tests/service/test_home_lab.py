"""The memory and processor time of `predrain up` on a small machine.

One process serves the disks of one host, and a collector reads the disks as in a home lab.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.collector.fake_smartctl import FakeSmartctl, every_kind
from tests.deadlines import idle_seconds
from tests.ports import hold_port

PREDRAIN = (sys.executable, "-c", "from predrain.service.cli import run; run()")
DISKS = 22
MEMORY_MB = 150
CORE_SHARE = 0.01
WATCHED_SECONDS = 20.0
SETTLED_WITHIN_SECONDS = 60.0
"""The first judgement of the forecast and the like follow the first scores; their work ends within this time."""


@dataclass
class HomeLab:
    """The service and the collector of one machine."""

    folder: Path
    port: int
    service: subprocess.Popen[bytes]

    def ask(self, path: str) -> object:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}")
        request.add_header("Authorization", f"Bearer {(self.folder / 'state/token').read_text().strip()}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    def count_scored_disks(self) -> int:
        try:
            found = self.ask("/api/v1/devices")
        except OSError:
            return 0
        assert isinstance(found, dict)
        return len(found["items"])

    def read_resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self.service.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def read_processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.service.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[HomeLab]:
    port = hold_port()
    state = tmp_path / "state"
    service = subprocess.Popen(
        [*PREDRAIN, "up", "--port", str(port), "--state", str(state)], stdout=subprocess.DEVNULL
    )
    try:
        yield HomeLab(tmp_path, port, service)
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(60)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_home_lab_with_22_disks_takes_under_150_mb_and_one_per_cent_of_a_core(lab: HomeLab) -> None:
    fake = FakeSmartctl(lab.folder / "fake", every_kind())
    token = lab.folder / "state/token"
    while not token.exists():
        time.sleep(0.05)
    settings = {
        "url": f"http://127.0.0.1:{lab.port}", "token_file": str(token), "smartctl": str(fake.program),
        "host": "home-01", "reading_interval_minutes": 60,
    }  # fmt: skip
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    config = lab.folder / "collector.toml"
    config.write_text("\n".join([f'[service]\nstate = "{lab.folder / "collector"}"', "[collector]", *lines]))
    collector = subprocess.Popen([*PREDRAIN, "collect", "--config", str(config)])
    try:
        while lab.count_scored_disks() < DISKS:
            time.sleep(0.2)
    finally:
        collector.terminate()
        collector.wait(60)
    shares: list[float] = []
    until = idle_seconds() + SETTLED_WITHIN_SECONDS
    while not shares or (shares[-1] >= CORE_SHARE and idle_seconds() < until):
        began = lab.read_processor_seconds()
        time.sleep(WATCHED_SECONDS)
        shares.append((lab.read_processor_seconds() - began) / WATCHED_SECONDS)
    assert shares[-1] < CORE_SHARE, shares
    assert lab.read_resident_mb() < MEMORY_MB
