"""Figures of a start: how long a person waits for the first answer of `predrain up`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.figure import Figure, Work
from tests.ports import hold_port

STARTS = 3
DISKS = 6_000
BARE = (
    "import sys, uvicorn\nfrom fastapi import FastAPI\napp = FastAPI()\n"
    "app.get('/healthz')(lambda: {})\nuvicorn.run(app, port=int(sys.argv[1]), log_level='error')\n"
)
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The environment in which Python keeps compiled files. An installed predrain was compiled before, and the first start
compiles a checkout."""
UP = "import sys\nfrom predrain.service.cli import main\nsys.exit(main(sys.argv[1:]))"


def fresh() -> Work:
    """The first start of all: directory, log and store are made, too."""
    starts = []
    for _ in range(STARTS):
        with TemporaryDirectory() as folder:
            starts.append(_ours(Path(folder)))
    return _fastest(starts)


def known() -> Work:
    """A start on 6,000 disks that were read before."""
    with TemporaryDirectory() as folder:
        _filled(Path(folder))
        return _fastest([_ours(Path(folder)) for _ in range(STARTS)])


def restarted(disks: int, *, checkpoints: bool = True) -> Work:
    """A start on disks with a past, until all of their states are read back and readings are scored."""
    from predrain.data.store.sqlite_store import SqliteStore
    from tests.bench import stage as scene
    from tests.bench.histories import fill_past

    with TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.sqlite")
        fill_past(store, scene.drives(disks), checkpoints=checkpoints)
        store.close()
        return _fastest([_ours(Path(folder), "readyz") for _ in range(STARTS)])


def bare() -> Work:
    """The same framework and server with one route and nothing behind it."""
    ports = [hold_port() for _ in range(STARTS)]
    return _fastest([_started(["-c", BARE, str(port)], port) for port in ports])


def _ours(state: Path, route: str = "healthz") -> Work:
    port = hold_port()
    return _started(["-c", UP, "up", "--port", str(port), "--state", str(state)], port, route)


def _started(arguments: list[str], port: int, route: str = "healthz") -> Work:
    """Wall and processor seconds of a process until it answers."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], env=COMPILED, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while not _answers(port, route):
            if process.poll() is not None:
                raise RuntimeError(f"{arguments} ended with {process.returncode}")
            time.sleep(
                0.005 if route == "healthz" else 0.05
            )  # a start that takes seconds is not to answer hundreds
        return Work(1, time.perf_counter() - began, processor_seconds(process.pid))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _answers(port: int, route: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{route}", timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def processor_seconds(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def _fastest(starts: list[Work]) -> Work:
    """Files are in memory by then, as after a restart."""
    best = min(starts, key=lambda one: one.quiet)
    best.note = f"best of {len(starts)}, files in memory"
    return best


def _filled(state: Path) -> None:
    from predrain.data.store.sqlite_store import SqliteStore
    from tests.service.conftest import smart_reading

    store, now = SqliteStore(state / "store.sqlite"), datetime.now(UTC)
    store.add_readings(smart_reading(f"{n}", now) for n in range(DISKS))
    store.close()


def _soon(work: Work, _: float) -> bool:
    return work.quiet < 2.0


def _restart(name: str, seconds: float, ours: Callable[[], Work], *, long: bool = False) -> Figure:
    target = f"under {seconds:g} s"
    return Figure(
        name,
        "starts",
        ours,
        bare,
        "a bare FastAPI application",
        target,
        lambda work, _: work.quiet < seconds,
        long,
    )


FIGURES = [
    Figure("up: to first answer", "starts", fresh, bare, "a bare FastAPI application", "under 2 s", _soon),
    Figure(
        "up: to first answer, 6,000 disks",
        "starts",
        known,
        bare,
        "a bare FastAPI application",
        "under 2 s",
        _soon,
    ),
    _restart("up: to first score, 6,000 disks", 2.5, partial(restarted, DISKS)),
    _restart(
        "up: to first score, 6,000 disks, no checkpoints", 2.5, partial(restarted, DISKS, checkpoints=False)
    ),
    _restart("up: to first score, 50,000 disks", 6.0, partial(restarted, 50_000), long=True),
]
