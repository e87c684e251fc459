"""The first values of a process may be read by several threads at once: none of them crashes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = """
import os, sys, threading
sys.setswitchinterval(1e-6)
{read}
def first():
    gate = threading.Barrier(8)
    threads = [threading.Thread(target=lambda: (gate.wait(), read())) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
for _ in range(30):
    if (child := os.fork()) == 0:
        first()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
READING = """
from pathlib import Path
from predrain.data.reading import Reading
from predrain.data.wire import envelope
from predrain.data.wire import wire_bodies as bodies
raw = Path("tests/golden/wire/reading.v2.json").read_bytes()
def read(): envelope.decode_envelope(raw, Reading)
"""
CRUSH = """
from predrain.actions.crush.crush_dump import crush_of_dump
device = '{"id": 0, "name": "osd.0", "class": "hdd"}'
raw = ('{"devices": [' + device + '], "buckets": [], "rules": [], "tunables": {}}').encode()
def read(): crush_of_dump(raw)
"""


@pytest.mark.parametrize("read", [READING, CRUSH], ids=["a reading", "a CRUSH map"])
def test_threads_that_read_their_first_value_at_once_do_not_crash_the_process(read: str) -> None:
    subprocess.run([sys.executable, "-c", AT_ONCE.replace("{read}", read)], cwd=ROOT, check=True, timeout=60)
