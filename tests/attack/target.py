"""The service under attack: a `predrain up` in a process of its own, with its address, token, memory and probes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from tests.attack.outcome import FINISHED, AttackOutcome, ServiceStrain
from tests.deadlines import idle_seconds

PREDRAIN = Path(sys.executable).parent / "predrain"
START_SECONDS = 120.0
NO_RATES = "[access]\nrequests_per_second = 1e6\naddress_requests_per_second = 1e6\n"
"""Settings that leave the rates of requests unbounded, so that other limits are what is tried."""


@dataclass(frozen=True, slots=True)
class Target:
    """A running service. `token` may do all."""

    host: str
    port: int
    token: str
    pid: int

    @property
    def address(self) -> str:
        """`HOST:PORT`."""
        return f"{self.host}:{self.port}"

    def connect(self, seconds: float = 60.0) -> socket.socket:
        """A connection on which nothing was sent yet."""
        return socket.create_connection((self.host, self.port), timeout=seconds)

    def head(self, method: str, path: str, length: int | None, *, token: str | None = None) -> bytes:
        """The head of a request for one connection; without a length its body comes in chunks."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close"]
        lines += ["Content-Type: application/json"]
        lines += [f"Content-Length: {length}"] if length is not None else ["Transfer-Encoding: chunked"]
        lines += [f"Authorization: Bearer {token}"] if token else []
        return "\r\n".join([*lines, "", ""]).encode()

    def post(self, path: str, body: bytes, *, token: str | None = None, seconds: float = 60.0) -> bytes:
        """The whole answer, head and body; what came before the service closed."""
        with self.connect(seconds) as connection:
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(self.head("POST", path, len(body), token=token) + body)
            return read_all(connection)

    def probe(self) -> float:
        """Seconds that `/healthz` takes on a new connection."""
        begun = time.monotonic()
        connection = HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        except (OSError, HTTPException):
            return 60.0
        finally:
            connection.close()
        return time.monotonic() - begun

    def memory_bytes(self, field: str = "VmRSS") -> int:
        """Resident memory now, or at its peak (`VmHWM`) since `forget_peak`."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in text.splitlines() if line.startswith(field))
        return int(line.split()[1]) * 1024

    def forget_peak(self) -> None:
        """Count the peak of memory from now on."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")


def read_all(connection: socket.socket) -> bytes:
    """All that comes until the service closes."""
    said = bytearray()
    with suppress(ConnectionResetError, TimeoutError):
        while piece := connection.recv(1 << 16):
            said += piece
    return bytes(said)


def status_of(answer: bytes) -> int:
    """The status of an answer; 0 where none came."""
    parts = answer[:64].split(b" ")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0


class Watch:
    """Probes the target while an attack runs, and counts what came of the attack."""

    def __init__(self, target: Target, name: str) -> None:
        self._target, self._outcome = target, AttackOutcome(name)
        self._idle = max(target.probe() for _ in range(20))
        target.forget_peak()
        self._before, self._slowest = target.memory_bytes(), 0.0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._largest = 0
        self._thread = threading.Thread(target=self._probe, daemon=True)
        self._thread.start()

    def count(self, answer: bytes, *, refused: tuple[int, ...]) -> None:
        """One request of the attack and its answer; `refused`: the statuses that refuse it."""
        with self._lock:
            self._largest = max(self._largest, len(answer))
            self._outcome.count(refused=status_of(answer) in refused)

    def end(self) -> AttackOutcome:
        """The attack is over."""
        self._over.set()
        self._thread.join()
        self._outcome.measured = ServiceStrain(
            largest_answer_bytes=self._largest,
            slowest_probe_seconds=self._slowest,
            idle_probe_seconds=self._idle,
            memory_growth_bytes=self._target.memory_bytes("VmHWM") - self._before,
        )
        FINISHED.append(self._outcome)
        return self._outcome

    def _probe(self) -> None:
        while True:
            self._slowest = max(self._slowest, self._target.probe())
            if self._over.wait(0.02):
                return


@contextmanager
def running_service(folder: Path, *, settings: str = "", limits: str = "") -> Iterator[Target]:
    """`predrain up` on a free port, without a cluster, scoring. limits: shell words before it (`ulimit -f 100;`)."""
    state, config = folder / "state", folder / "predrain.toml"
    config.write_text(f'[service]\nport = 0\nstate = "{state}"\n{settings}')
    command = f'{limits} exec "{PREDRAIN}" up --config "{config}"'
    with (folder / "said").open("wb") as said:
        # The service must not take settings from the environment of the person who runs the tests.
        ours = {name: value for name, value in os.environ.items() if not name.startswith("PREDRAIN_")}
        process = subprocess.Popen(["/bin/bash", "-c", command], stdout=said, stderr=said, env=ours)
        try:
            url = urlsplit(_url(state, process, folder / "said"))
            token = (state / "token").read_text().strip()
            target = Target(url.hostname or "", url.port or 0, token, process.pid)
            _await_ready(target)
            yield target
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)


def _await_ready(target: Target) -> None:
    """Wait until the forecaster is loaded and every route was asked once: what is imported late is no attack's."""
    end = idle_seconds() + START_SECONDS
    while idle_seconds() < end:
        with target.connect() as connection:
            connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            if status_of(read_all(connection)) == 200:
                break
        time.sleep(0.2)
    target.post("/api/v1/readings", b"[]", token=target.token)
    for path in ("/api/v1/session", "/api/v1/enrolment"):
        for _ in range(20):
            target.post(path, b'{"unknown": 1}')


def _url(state: Path, process: subprocess.Popen[bytes], said: Path) -> str:
    end = idle_seconds() + START_SECONDS
    while idle_seconds() < end and process.poll() is None:
        if (state / "url").exists() and (url := (state / "url").read_text().strip()):
            return url
        time.sleep(0.1)
    raise AssertionError(f"the service did not start: {said.read_text(errors='replace')}")
