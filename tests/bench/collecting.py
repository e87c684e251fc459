"""The memory and processor time that a collector takes on a host of sixty disks, with an OSD on each.

The collector delivers its readings to a service.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bench.figure import Figure, Work
from tests.bench.loading import serving
from tests.bench.starting import processor_seconds
from tests.collector.fake_smartctl import Disk, FakeSmartctl
from tests.collector.latency.fake_osd import FakeOsd, answers_of, looks

DISKS = 60
SECONDS = 60.0
LOOK_SECONDS = 15.0
MOST_MEGABYTES, MOST_OF_A_CORE = 60.0, 0.01
_OURS = """
import sys
from functools import partial
from pathlib import Path
from predrain.service.processes import collector_process as collecting
from predrain.service.config.collector_table import load_collector_settings
folder = Path(sys.argv[1])
assert collecting.admin_sockets and hasattr(collecting, "_SUDO")
collecting.admin_sockets = partial(collecting.admin_sockets, folder)
collecting._SUDO = None
collecting.run_collector(load_collector_settings(folder / "predrain.toml"), lambda _: None)
"""
"""`predrain collect` whose drives are files and whose OSDs are those of a folder."""
_BARE = """
import json, socket, sys, time
while True:
    for osd in range({disks}):
        line = socket.socket(socket.AF_UNIX)
        line.connect(f"{sockets}/ceph-osd.{{osd}}.asok")
        line.sendall(b'{{"prefix": "perf dump", "logger": "osd", "format": "json"}}\\0')
        told = b""
        while part := line.recv(1 << 20):
            told += part
        json.loads(told[4:])
        line.close()
    print("asked", flush=True)
    time.sleep({seconds})
"""


def collector() -> Work:
    """The collector, once its first round is delivered: megabytes at its peak, and what it burns from then on."""
    with ExitStack() as closing:
        folder = closing.enter_context(_host())
        service = closing.enter_context(serving(DISKS))
        smartctl = FakeSmartctl(
            folder / "disks", [Disk(f"/dev/sd{n}", serial=f"BENCH{n:03}") for n in range(DISKS)]
        )
        (folder / "predrain.toml").write_text(
            f'[service]\nstate = "{folder}/state"\n[collector]\nhost = "bench"\nsmartctl = "{smartctl.program}"\n'
            f'url = "http://{service.address}"\ntoken_file = "{service.folder}/state/token"\n'
        )
        before = service.worked()
        process = closing.enter_context(_running("-c", _OURS, str(folder)))
        while service.worked() < before + DISKS:
            if process.poll() is not None:
                raise RuntimeError(f"the collector ended with {process.returncode}")
            time.sleep(0.2)
        first = processor_seconds(process.pid)
        work = _watched(process)
        work.note = f"start and first round: {first:.2f} s of processor; smartctl not counted"
        return work


def bare() -> Work:
    """A process that asks the same sockets as often and reads JSON, and nothing else."""
    with _host() as folder:
        script = _BARE.format(disks=DISKS, sockets=folder / "run/ceph", seconds=LOOK_SECONDS)
        with _running("-c", script) as process:
            assert process.stdout is not None
            process.stdout.readline()
            return _watched(process)


@contextmanager
def _host() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="predrain-bench-") as made:
        folder = Path(made)
        sockets = folder / "run/ceph"
        sockets.mkdir(parents=True)
        answers = answers_of(looks("reef")[1])
        osds = [FakeOsd(sockets / f"ceph-osd.{osd}.asok", answers) for osd in range(DISKS)]
        try:
            yield folder
        finally:
            for osd in osds:
                osd.stop()


@contextmanager
def _running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _watched(process: subprocess.Popen[str]) -> Work:
    began, burnt = time.perf_counter(), processor_seconds(process.pid)
    time.sleep(SECONDS)
    status = Path(f"/proc/{process.pid}/status").read_text()
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    assert peak is not None
    return Work(int(peak[1]) / 1024, time.perf_counter() - began, processor_seconds(process.pid) - burnt)


FIGURES = (
    Figure(
        "collector: 60 disks, 60 OSDs", "MB at its peak", collector, bare,
        "the same sockets asked, JSON read", "under 60 MB and 1 % of a core",
        lambda work, _: work.amount < MOST_MEGABYTES and work.cpu < MOST_OF_A_CORE * work.seconds,
    ),
)  # fmt: skip
