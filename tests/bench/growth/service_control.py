"""The service that is measured, from outside: started, asked, given a cluster, ended."""

from __future__ import annotations

import asyncio
import http.client
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue

from tests.bench.growth.measures import MeasureName
from tests.bench.growth.probing import GrowthFailed, ProcessProbe, compute_patience, wait_for
from tests.bench.readers import Readers
from tests.bench.stage import quantile

ROOT = Path(__file__).resolve().parents[3]
NO_RATES = "[access]\nrequests_per_second = 1e6\naddress_requests_per_second = 1e6\n"
ASKED_EVERY = 0.5
"""Seconds between two questions for `devices`."""
LAST_LINES = 12


@dataclass(frozen=True)
class MeasuredService:
    """One that answers."""

    process: subprocess.Popen[str]
    state: Path
    address: str
    disks: int
    began: float
    """When it was started, by the monotonic clock."""
    _said: Queue[str]

    @property
    def token(self) -> str:
        return (self.state / "token").read_text().strip()

    @property
    def probe(self) -> ProcessProbe:
        return ProcessProbe((self.process.pid,))

    def is_ready(self) -> bool:
        """Return whether the forecaster is loaded and all states are read back."""
        with closing(http.client.HTTPConnection(self.address, timeout=compute_patience(self.disks))) as way:
            way.request("GET", "/readyz")
            return way.getresponse().status == 200

    def give_view(self) -> None:
        """Give it a cluster of one OSD for each disk. Raises GrowthFailed."""
        assert self.process.stdin is not None
        self.process.stdin.write("view\n")
        self.process.stdin.flush()
        try:
            self._said.get(timeout=compute_patience(self.disks))
        except Empty:
            raise GrowthFailed("the service did not take a view of its cluster") from None


@dataclass
class DeviceQuestions:
    """Waits for `GET devices`, in seconds."""

    waits: list[float] = field(default_factory=list)
    failure: str = ""

    def quantile_ms(self, share: float) -> float:
        """Return the wait that a share of the answers did not exceed. Raises GrowthFailed."""
        if self.failure or not self.waits:
            raise GrowthFailed(f"GET devices was not answered: {self.failure or 'the load was too short'}")
        return 1e3 * quantile(self.waits, share)


@contextmanager
def ask_for_devices(service: MeasuredService) -> Iterator[DeviceQuestions]:
    """Ask twice a second on one connection until the context ends."""
    found, over = DeviceQuestions(), threading.Event()

    def ask() -> None:
        patience = compute_patience(service.disks)
        try:
            with closing(http.client.HTTPConnection(service.address, timeout=patience)) as way:
                while not over.is_set():
                    began = time.monotonic()
                    way.request("GET", "/api/v1/devices", headers={"Accept-Encoding": "gzip"})
                    answer = way.getresponse()
                    answer.read()
                    if answer.status != 200:
                        raise ValueError(f"status {answer.status}")
                    found.waits.append(time.monotonic() - began)
                    over.wait(max(0.0, began + ASKED_EVERY - time.monotonic()))
        except (OSError, http.client.HTTPException, ValueError) as error:
            found.failure = f"{type(error).__name__}: {error}"

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    try:
        yield found
    finally:
        over.set()
        asking.join()


@contextmanager
def start_service(folder: Path, mode: str, disks: int, settings: str = NO_RATES) -> Iterator[MeasuredService]:
    """Start `up` or `serve` on the state in `folder`, and end it with the context. Raises GrowthFailed.

    settings: tables of a settings file beside `[service]`.
    """
    config = folder / f"{mode}.toml"
    config.write_text(f'[service]\nport = 0\nstate = "{folder / "state"}"\n{settings}')
    command = [sys.executable, "-m", "tests.bench.growth.measured_service", str(config), mode]
    said = Queue[str]()
    with ExitStack() as closings:
        errors = closings.enter_context((folder / f"{mode}.errors").open("wb"))
        began = time.monotonic()
        process = closings.enter_context(
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=ROOT,
                env=make_environment(),
            )
        )
        passing = threading.Thread(target=_pass_lines, args=(process, said), daemon=True)
        passing.start()
        closings.callback(passing.join)
        closings.callback(end_process, process)
        wait_for(
            f"the first answer of `{mode}`",
            lambda: not said.empty() or process.poll() is not None,
            compute_patience(disks),
            pause=0.005,
        )
        if said.empty():
            raise GrowthFailed(f"`{mode}` ended with {process.returncode}:\n{read_end(Path(errors.name))}")
        yield MeasuredService(process, folder / "state", said.get(), disks, began, said)


def make_environment() -> dict[str, str]:
    """Return the environment without the settings of the person who measures, and with compiled files kept."""
    return {
        name: value
        for name, value in os.environ.items()
        if not (name.startswith("PREDRAIN_") or name == "PYTHONDONTWRITEBYTECODE")
    }


def read_end(errors: Path) -> str:
    """Return the last lines that a process wrote."""
    return "\n".join(errors.read_text(errors="replace").splitlines()[-LAST_LINES:])


def end_process(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """End it, at the latest after 30 s."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(30)
        return
    process.kill()
    process.wait(30)


def read_page(service: MeasuredService) -> dict[MeasureName, float]:
    """Ask once for everything that the page draws first. Raises GrowthFailed if an answer is missing."""
    readers, spent = Readers(service.address), service.probe.burnt()
    asyncio.run(asyncio.wait_for(readers.read_once(), compute_patience(service.disks)))
    if readers.failed:
        raise GrowthFailed(f"{readers.failed} of the page's answers failed")
    return {
        MeasureName.PAGE_CPU: service.probe.burnt() - spent,
        MeasureName.PAGE_WALL: readers.waits[0],
        MeasureName.PAGE_BYTES: readers.sizes[0].packed,
    }


def _pass_lines(process: subprocess.Popen[str], said: Queue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        said.put(line.strip())
