"""`predrain up` processes over one PostgreSQL store: begun, asked over REST, and ended. One is active at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2

from predrain.actions.cluster.lease_owner import parse_owner
from predrain.data.clock import SystemClock
from predrain.data.ids import HostName
from predrain.data.reading import Reading
from predrain.service.storage.record_sender import RecordSender
from tests.deadlines import idle_seconds
from tests.processes import thaw_process
from tests.service import cluster_played
from tests.service.conftest import smart_reading, week_of

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
    """One `predrain up` with a state directory of its own. `client` sends the token of a person who may act."""

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

    def post(self, readings: list[Reading], timeout: float = 60) -> httpx2.Response:
        sender = RecordSender("hosts", SystemClock())
        sent = [json.loads(sender.encode_envelope(one)) for one in readings]
        return self.client.post("/api/v1/readings", json=sent, timeout=timeout)

    def judges(self, device: str) -> bool:
        return any(
            row["device"] == device and row["status"] == "bad" for row in self.get("outlooks")["items"]
        )


@dataclass
class Services:
    """The services that one settings file describes."""

    folder: Path
    settings: str
    begun: list[Service] = field(default_factory=list)

    def begin(self, name: str, within: Sequence[str] = ()) -> Service:
        """Start one. within: the start of a command line that puts the process into namespaces of its own."""
        state, config = self.folder / name, self.folder / "predrain.toml"
        config.write_text(self.settings)
        command = [*within, PREDRAIN, "up", "--config", config, "--state", state]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PREDRAIN_")}
        with (self.folder / f"{name}.txt").open("wb") as said:
            process = subprocess.Popen(command, stderr=said, env=environment)
        self.begun.append(Service(process, state))
        return self.begun[-1]

    def end(self) -> None:
        """Kill all of them."""
        for service in self.begun:
            thaw_process(service.process.pid)
            service.process.kill()
            service.process.wait()
            service.client.close()


@dataclass
class PlayedServices:
    """Services that control a cluster that is played from a recording, and that send messages to `receiver`.

    more: tables of settings beside those of the store, the cluster and the webhook.
    """

    folder: Path
    url: str
    more: str = ""
    receiver: Receiver = field(default_factory=Receiver)
    services: Services = field(init=False)

    def __post_init__(self) -> None:
        (self.folder / "ceph.conf").touch()
        for name in ("secret", "signing_key"):
            (self.folder / name).write_text("what both services share, and nobody else knows\n")
            (self.folder / name).chmod(0o600)
        played = [sys.executable, str(ROOT / "tests/service/cluster_played.py"), str(RECORDING)]
        settings = (
            f'[service]\nport = 0\n[store]\nurl = "{self.url}"\n'
            f'[webhook]\nurl = "http://127.0.0.1:{self.receiver.server_port}/"\nallow_private_address = true\n'
            f'secret_file = "{self.folder / "secret"}"\n'
            f'[ceph]\nconf = "{self.folder / "ceph.conf"}"\npython = {json.dumps([*played, str(self.shared)])}\n'
            f'signing_key = "{self.folder / "signing_key"}"\nlease_seconds = {DRAIN_LEASE_SECONDS}\n'
            f"[policy]\ntick_seconds = 1\nmgr_stats_period_seconds = 1\n{self.more}"
        )
        self.services = Services(self.folder, settings)

    @property
    def shared(self) -> Path:
        return self.folder / "shared.json"

    def begin(self, name: str) -> Service:
        return self.services.begin(name)

    def controls(self, service: Service) -> bool:
        """Return True if the service's controller holds the cluster's lease."""
        with cluster_played.shared(self.shared) as state:
            lock = state["lock"]
        return lock is not None and parse_owner(lock["by"][1]).pid == service.process.pid

    def end(self) -> None:
        """Kill the services, and take no more messages."""
        self.services.end()
        self.receiver.shutdown()
        self.receiver.server_close()


def wait_until(done: Callable[[], object], what: str, pause: float = 0.1) -> float:
    """Wait for it; return the seconds that it took by the clock of the machine."""
    began, end = time.monotonic(), idle_seconds() + PATIENCE
    while not done():
        assert idle_seconds() < end, what
        time.sleep(pause)
    return time.monotonic() - began


def make_sick_readings(serial: str) -> list[Reading]:
    """Readings of a bad disk in a host of its own, so that each one is a cause of its own."""
    now = datetime.now(UTC)
    bad = [smart_reading(serial, now - timedelta(hours=h), pending=400) for h in (30, 20, 10, 0)]
    history = [*week_of(serial, now - timedelta(hours=36)), *bad]
    return [replace(one, host=HostName(f"stor-{serial}")) for one in history]
