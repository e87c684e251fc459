"""Figures under load: two hundred readers of the page and two thousand readings a second, both at one service.

`predrain up` runs as it ships, in a process of its own, with 6,000 disks under as many OSDs, on the same machine as all
who ask it. A reader does what the page does: it holds the event stream, and when that says that something changed it
asks for what changed, then rests as the page rests. One more asks for `devices` ten times a second; its waits are the
figure. In the end every reading that was accepted must be in the store.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from predrain.data.clock import SystemClock
from predrain.data.ids import DeviceId
from predrain.service.storage.record_sender import RecordSender
from tests.bench.figure import Figure, Work
from tests.bench.fleet_view import build_view
from tests.bench.readers import Readers
from tests.bench.stage import NOW, drives, quantile, reading

DEVICES, READERS, A_SECOND, A_POST = 6_000, 200, 2_000, 100
SHORT_SECONDS, LONG_SECONDS = 20.0, 300.0
PATIENCE = 900.0
QUIET_SECONDS = 5.0
AIM_MS = 100.0
STAMP = NOW.isoformat().replace("+00:00", "Z").encode()


def count_worked(address: str) -> int:
    """Readings that the service at `address` has judged."""
    with closing(http.client.HTTPConnection(address, timeout=120)) as connection:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    found = next(line for line in lines if line.startswith("predrain_readings_processed_total "))
    return int(float(found.split()[1]))


@dataclass
class Service:
    """One that answers."""

    process: subprocess.Popen[str]
    folder: Path
    address: str

    @property
    def token(self) -> str:
        return (self.folder / "state" / "token").read_text().strip()

    def ask(self, connection: http.client.HTTPConnection, path: str) -> bytes:
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise ValueError(f"{path} is answered with {answer.status}: {body[:200]!r}")
        return body

    def worked(self) -> int:
        """Readings that were judged."""
        return count_worked(self.address)

    def megabytes(self) -> float:
        """Return the resident memory of the service now, in MB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def burnt(self) -> float:
        """Its processor seconds."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class StampedEnvelopes:
    """Envelopes of one reading of each of `devices` disks, which are encoded once and get their times when sent."""

    def __init__(self, devices: int) -> None:
        sender = RecordSender("bench", SystemClock())
        self.names = list[DeviceId]()
        self._parts = list[list[bytes]]()
        for number, smart in enumerate(drives(devices)):
            one = reading(number, smart, NOW)
            envelope = sender.encode_envelope(one)
            if STAMP not in envelope:
                raise ValueError("an envelope does not say when it was taken as it did once")
            self.names.append(one.device)
            self._parts.append(envelope.split(STAMP))

    def __len__(self) -> int:
        return len(self._parts)

    def stamp_next(self, first: int, count: int) -> list[tuple[DeviceId, bytes]]:
        """Return `count` readings that are taken now, each at its own time, from disk `first` on, round and round."""
        now, found = datetime.now(UTC), []
        for place in range(count):
            stamp = (now - timedelta(microseconds=count - place)).isoformat().replace("+00:00", "Z").encode()
            number = (first + place) % len(self._parts)
            found.append((self.names[number], stamp.join(self._parts[number])))
        return found


class Hosts:
    """Hosts that send A_SECOND readings a second in posts of A_POST, each reading with its own time."""

    def __init__(
        self, address: str, token: str, devices: int = DEVICES, envelopes: StampedEnvelopes | None = None
    ) -> None:
        self._envelopes = envelopes or StampedEnvelopes(devices)
        self._token, self.accepted = token, 0
        self._connection, self._posted = http.client.HTTPConnection(address, timeout=PATIENCE), 0.0

    def once(self, service: Service) -> None:
        """Everything at once, until `service` has judged it."""
        while self.accepted < len(self._envelopes):
            self.post()
        _until(lambda: service.worked() >= self.accepted)

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def post(self) -> None:
        """The next ones."""
        if time.monotonic() - self._posted > QUIET_SECONDS:
            self.close()  # the service closes a connection that was quiet for long; the next request opens another
        bodies = [body for _, body in self._envelopes.stamp_next(self.accepted, A_POST)]
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        self._connection.request("POST", "/api/v1/readings", b"[" + b",".join(bodies) + b"]", headers)
        answer = json.loads(self._connection.getresponse().read())
        self._posted = time.monotonic()
        if answer.get("accepted") != A_POST:
            raise ValueError(f"readings are refused: {str(answer)[:300]}")
        self.accepted += A_POST

    def send(self, seconds: float, a_second: int = A_SECOND) -> None:
        """At the pace, for so long; one who is late hurries."""
        began, count = time.monotonic(), 0
        while time.monotonic() < began + seconds:
            self.post()
            count += A_POST
            time.sleep(max(0.0, began + count / a_second - time.monotonic()))


@dataclass
class Held:
    """Memory of the service, second by second."""

    service: Service
    seen: list[float] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        while not self.over.wait(1.0):
            self.seen.append(self.service.megabytes())

    def told(self) -> str:
        """Mean of the first and of the last fifth."""
        some = max(1, len(self.seen) // 5)
        first, last = self.seen[:some], self.seen[-some:]
        return f"{sum(first) / some:.0f} to {sum(last) / some:.0f} MB"


def loaded(seconds: float) -> Work:
    """All at once, for so long."""
    with serving() as service:
        hosts = Hosts(service.address, service.token)
        hosts.once(service)
        held, spawn = Held(service), multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        readers = spawn.Process(target=_read, args=(service.address, seconds, theirs), daemon=True)
        readers.start()
        theirs.close()
        ours.recv()
        threads = [
            threading.Thread(target=hosts.send, args=(seconds,)), threading.Thread(target=held.watch)
        ]  # fmt: skip
        before, began, spent = hosts.accepted, time.monotonic(), service.burnt()
        for thread in threads:
            thread.start()
        waits = _asked(service, began + seconds)
        threads[0].join()
        took, spent = time.monotonic() - began, service.burnt() - spent
        sent = hosts.accepted - before
        held.over.set()
        found: Readers = ours.recv()
        readers.join()
        _until(lambda: service.worked() >= hosts.accepted)
        behind, kept = time.monotonic() - began - took, _kept(service)
    if kept != hosts.accepted:
        raise ValueError(f"{hosts.accepted:,} readings were accepted and {kept:,} are in the store")
    note = (
        f"devices p50 {_ms(waits, 0.5)}, p99 {_ms(waits, 0.99)}; {sent / took:,.0f} readings/s, the last judged "
        f"{behind:.0f} s after, none lost; {found.rounds / took:,.0f} rounds/s of {READERS} readers, half within "
        f"{_ms(found.waits, 0.5)}, {found.failed} failed; {held.told()}; {100 * spent / took:.0f} % of a processor"
    )
    return Work(1, quantile(waits, 0.99), note=note)


def alone() -> Work:
    """The same question to a service that has nothing else to do."""
    with serving() as service:
        Hosts(service.address, service.token).once(service)
        waits = _asked(service, time.monotonic() + 10)
    return Work(1, quantile(waits, 0.99), note=f"devices p50 {_ms(waits, 0.5)}, p99 {_ms(waits, 0.99)}")


def _asked(service: Service, end: float) -> list[float]:
    """Seconds of each answer to `GET devices`, ten a second until `end`."""
    waits = []
    with closing(http.client.HTTPConnection(service.address, timeout=120)) as connection:
        while (began := time.monotonic()) < end:
            service.ask(connection, "/api/v1/devices")
            waits.append(time.monotonic() - began)
            time.sleep(max(0.0, began + 0.1 - time.monotonic()))
    return waits


def _kept(service: Service) -> int:
    with closing(sqlite3.connect(service.folder / "state" / "store.sqlite")) as store:
        (count,) = store.execute("SELECT count(*) FROM readings").fetchone()
    return int(count)


def _read(address: str, seconds: float, told: Any) -> None:
    readers = Readers(address)
    asyncio.run(readers.read(READERS, seconds, lambda: told.send("all listen")))
    told.send(readers)


def _ms(waits: Sequence[float], share: float) -> str:
    return f"{1000 * quantile(waits, share):,.0f} ms" if waits else "unknown"


def _until(done: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise TimeoutError("readings wait for ever")
        time.sleep(0.5)


@contextmanager
def serving(devices: int = DEVICES) -> Iterator[Service]:
    """A service with so many disks under as many OSDs, ended with the context."""
    with tempfile.TemporaryDirectory(prefix="predrain-bench-") as folder:
        command = [sys.executable, "-m", "tests.bench.loading", folder, str(devices)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield Service(process, Path(folder), process.stdout.readline().strip())
            finally:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(30)
                process.kill()


def _serve(folder: Path, devices: int) -> None:
    """Serve as `predrain up` does until SIGTERM, over a cluster that does not change."""
    from predrain.service.config.settings import ServiceTable, Settings
    from predrain.service.http.server import Server, bind_listening_socket, url_of
    from predrain.service.processes.up import open_application
    from predrain.service.runtime import python_runtime

    settings = Settings(service=ServiceTable(port=0, state=folder / "state"))
    listener = bind_listening_socket(settings.service)
    address = url_of(listener, settings.service).removeprefix("http://")
    python_runtime.tune_runtime()
    with open_application(settings, lambda _: None, lambda _: None) as built:
        seen = (reading(number, smart, NOW) for number, smart in enumerate(drives(devices)))
        built.application.fleet.update_view(build_view(seen))

        def started() -> None:
            built.application.run()
            print(address, flush=True)

        Server(built.application, built.known, listener, started=started).serve_here()


FIGURES = (
    Figure(
        "load: GET devices, 20 s", "answer", lambda: loaded(SHORT_SECONDS), alone,
        "nobody else asks", "p99 under 100 ms", lambda work, _: work.seconds * 1000 < AIM_MS,
    ),
    Figure(
        "load: GET devices, 5 min", "answer", lambda: loaded(LONG_SECONDS), alone,
        "nobody else asks", "p99 under 100 ms", lambda work, _: work.seconds * 1000 < AIM_MS, long=True,
    ),
)  # fmt: skip

if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]))
