"""A process that runs for long takes its memory from one arena of malloc."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

COUNT_ARENAS = """
import ctypes, threading
from predrain.service.runtime.python_runtime import tune_runtime
if {tuned}:
    tune_runtime()
libc, together = ctypes.CDLL(None), threading.Barrier(4)
def allocate():
    held = [bytes(1000) for _ in range(1000)]
    together.wait()
threads = [threading.Thread(target=allocate) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
stdout = ctypes.c_void_p.in_dll(libc, "stdout")
libc.malloc_info(0, stdout)
libc.fflush.argtypes = [ctypes.c_void_p]
libc.fflush(stdout)
"""


def count_arenas(*, tuned: bool) -> int:
    """Return the arenas of a process after four threads allocated in it at once."""
    command = [sys.executable, "-c", COUNT_ARENAS.format(tuned=tuned)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.count("<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas")
def test_threads_of_a_tuned_process_allocate_from_one_arena() -> None:
    assert count_arenas(tuned=True) == 1
    assert count_arenas(tuned=False) > 1
