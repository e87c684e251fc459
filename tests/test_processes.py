"""`freeze_process` returns when nothing of the process runs any more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import freeze_process, thaw_process

BUSY = """
import sys, threading
def count(): print(1, end="", flush=True)
def work():
    while True: count()
for _ in range(8): threading.Thread(target=work, daemon=True).start()
work()
"""


@pytest.fixture
def busy() -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(1)
    return process


def test_a_frozen_process_does_nothing_from_the_moment_freeze_returns(busy: subprocess.Popen[bytes]) -> None:
    def used() -> tuple[int, int]:
        fields = Path(f"/proc/{busy.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]), int(fields[12])  # ticks in user and in kernel mode

    with busy:
        try:
            freeze_process(busy.pid)
            before = used()
            for _ in range(20):
                assert used() == before
        finally:
            thaw_process(busy.pid)
            busy.kill()


def test_a_process_that_has_ended_counts_as_frozen(busy: subprocess.Popen[bytes]) -> None:
    with busy:
        busy.kill()
        busy.wait()
        freeze_process(busy.pid)
        thaw_process(busy.pid)
