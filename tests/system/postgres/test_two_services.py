"""Two `predrain up` over one real PostgreSQL: one is killed, the next one stands still, and the other one goes on.

The test prints how long each part of the fail-over took:
`.venv/bin/pytest tests/system/postgres/test_two_services.py -p no:xdist -s`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from predrain.actions.cluster.lease_owner import parse_owner
from predrain.data.clock import SystemClock
from predrain.data.ids import HostName
from predrain.data.reading import Reading
from predrain.service.storage.record_sender import RecordSender
from tests.deadlines import idle_seconds
from tests.processes import freeze_process, thaw_process
from tests.service import cluster_played
from tests.service.conftest import smart_reading, week_of

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[3]
RECORDING = ROOT / "tests" / "data" / "recorded" / "tentacle-clean.zip"
PREDRAIN = Path(sys.executable).with_name("predrain")
PATIENCE = 150.0
DRAIN_LEASE_SECONDS = 20


class Receiver(ThreadingHTTPServer):
    """Takes messages by webhook and keeps them."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Taker)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def count_ids(self) -> Counter[str]:
        return Counter(str(one["id"]) for one in self.messages)

    def names(self, device: str) -> bool:
        return any(device in json.dumps(one) for one in self.messages)


class _Taker(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Receiver)
        self.server.messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@dataclass
class Service:
    """One `predrain up` with a state directory of its own."""

    process: subprocess.Popen[bytes]
    state: Path
    client: httpx2.Client = field(init=False)

    def __post_init__(self) -> None:
        address = self.state / "url"
        wait_until(lambda: address.exists() and address.read_text().endswith("\n"), "it answers")
        token = (self.state / "token").read_text().strip()
        self.client = httpx2.Client(
            base_url=address.read_text().strip(), timeout=60, headers={"Authorization": f"Bearer {token}"}
        )

    def is_active(self) -> bool:
        with suppress(httpx2.TransportError):
            return self.client.get("/activez").status_code == 200
        return False

    def get(self, what: str) -> Any:
        answer = self.client.get(f"/api/v1/{what}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, readings: list[Reading]) -> httpx2.Response:
        sender = RecordSender("hosts", SystemClock())
        return self.client.post(
            "/api/v1/readings", json=[json.loads(sender.encode_envelope(one)) for one in readings]
        )

    def judges(self, device: str) -> bool:
        return any(
            row["device"] == device and row["status"] == "bad" for row in self.get("outlooks")["items"]
        )


@dataclass
class Pair:
    """The services, and what they share."""

    folder: Path
    url: str
    receiver: Receiver = field(default_factory=Receiver)
    begun: list[Service] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "ceph.conf").touch()
        for name in ("secret", "signing_key"):
            (self.folder / name).write_text("what both services share, and nobody else knows\n")
            (self.folder / name).chmod(0o600)
        played = [sys.executable, str(ROOT / "tests/service/cluster_played.py"), str(RECORDING)]
        (self.folder / "predrain.toml").write_text(
            f'[service]\nport = 0\n[store]\nurl = "{self.url}"\n'
            f'[webhook]\nurl = "http://127.0.0.1:{self.receiver.server_port}/"\nallow_private_address = true\n'
            f'secret_file = "{self.folder / "secret"}"\n'
            f'[ceph]\nconf = "{self.folder / "ceph.conf"}"\npython = {json.dumps([*played, str(self.shared)])}\n'
            f'signing_key = "{self.folder / "signing_key"}"\nlease_seconds = {DRAIN_LEASE_SECONDS}\n'
            "[policy]\ntick_seconds = 1\nmgr_stats_period_seconds = 1\n"
        )

    @property
    def shared(self) -> Path:
        return self.folder / "shared.json"

    def begin(self, name: str) -> Service:
        state = self.folder / name
        command = [PREDRAIN, "up", "--config", self.folder / "predrain.toml", "--state", state]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PREDRAIN_")}
        with (self.folder / f"{name}.txt").open("wb") as said:
            process = subprocess.Popen(command, stderr=said, env=environment)
        self.begun.append(Service(process, state))
        return self.begun[-1]

    def controls(self, service: Service) -> bool:
        """Whether the service's controller holds the cluster's lease."""
        with cluster_played.shared(self.shared) as state:
            lock = state["lock"]
        return lock is not None and parse_owner(lock["by"][1]).pid == service.process.pid


@pytest.fixture
def pair(tmp_path: Path, url: str) -> Iterator[Pair]:
    made = Pair(tmp_path, url)
    yield made
    for service in made.begun:
        thaw_process(service.process.pid)
        service.process.kill()
        service.process.wait()
        service.client.close()
    made.receiver.shutdown()
    made.receiver.server_close()


def wait_until(done: Callable[[], object], what: str) -> float:
    """Wait for it; return the seconds that it took by the clock of the machine."""
    began, end = time.monotonic(), idle_seconds() + PATIENCE
    while not done():
        assert idle_seconds() < end, what
        time.sleep(0.1)
    return time.monotonic() - began


def sick(serial: str) -> list[Reading]:
    """Readings of a bad disk in a host of its own, so that each one is a cause of its own."""
    now = datetime.now(UTC)
    bad = [smart_reading(serial, now - timedelta(hours=h), pending=400) for h in (30, 20, 10, 0)]
    history = [*week_of(serial, now - timedelta(hours=36)), *bad]
    return [replace(one, host=HostName(f"stor-{serial}")) for one in history]


def take_over(pair: Pair, standby: Service, waiting: str, new: str) -> dict[str, float]:
    """Seconds from now until the standby does each thing. waiting: a disk of which no message was sent yet."""
    began = time.monotonic()
    found = {"is the active one": wait_until(standby.is_active, "the standby becomes active")}
    assert standby.post(sick(new)).status_code == 200
    wait_until(lambda: standby.judges(f"ST4000DM000_{new}"), "it scores")
    found["has scored a new reading"] = time.monotonic() - began
    wait_until(lambda: pair.controls(standby), "it takes the cluster's lease")
    found["controls the cluster"] = time.monotonic() - began
    wait_until(lambda: pair.receiver.names(waiting), "it sends the message")
    found["has sent the message that was due, after a minute of gathering"] = time.monotonic() - began
    return found


def test_a_standby_goes_on_after_a_kill_and_after_a_stop_and_no_message_comes_twice(pair: Pair) -> None:
    first = pair.begin("first")
    wait_until(first.is_active, "the first one is active")
    second = pair.begin("second")
    wait_until(lambda: second.get("status")["service"]["active"], "the standby knows the active one")
    refused = second.post(sick("A"))
    told = refused.json()
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10"), told
    assert told["active"]["pid"] == first.process.pid
    assert told["active"]["url"] == str(first.client.base_url).rstrip("/")
    wait_until(lambda: second.client.get("/readyz").status_code == 200, "the standby is ready")
    assert second.client.get("/readyz").json()["parts"]["service"].startswith("This service is the standby")
    assert "predrain_active 0.0" in second.client.get("/metrics").text
    assert first.post(sick("A")).status_code == 200
    wait_until(lambda: pair.receiver.names("ST4000DM000_A"), "a message comes")
    wait_until(lambda: second.judges("ST4000DM000_A"), "the standby shows what the active one scored")

    assert first.post(sick("B")).status_code == 200
    wait_until(lambda: second.judges("ST4000DM000_B"), "the second disk is judged")
    first.process.kill()
    killed = take_over(pair, second, "ST4000DM000_B", "C")

    third = pair.begin("third")
    wait_until(lambda: third.get("status")["service"]["active"], "the new standby knows the active one")
    assert second.post(sick("D")).status_code == 200
    wait_until(lambda: third.judges("ST4000DM000_D"), "the fourth disk is judged")
    freeze_process(second.process.pid)
    stopped = take_over(pair, third, "ST4000DM000_D", "E")

    thaw_process(second.process.pid)
    wait_until(lambda: third.is_active() and not second.is_active(), "the stopped one notices")
    assert second.post(sick("F")).status_code == 503
    for serial in "ABCDE":
        wait_until(lambda serial=serial: pair.receiver.names(f"ST4000DM000_{serial}"), "no message is lost")
    assert not pair.controls(second)
    doubled = {id_: count for id_, count in pair.receiver.count_ids().items() if count > 1}
    assert doubled == {}
    for what in killed:
        print(
            f"\nthe standby {what}: {killed[what]:.1f} s after kill -9, {stopped[what]:.1f} s after SIGSTOP"
        )
