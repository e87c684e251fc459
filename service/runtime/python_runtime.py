"""Settings of the Python runtime for a process that runs for long."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from typing import Final

CYCLES: Final = (100_000, 50, 100)
"""Thresholds of the garbage collector. Readings and outlooks hold no cycles, and the search for cycles took a
quarter of the time.
"""
_M_ARENA_MAX: Final = -8
"""The parameter of glibc's mallopt(3) for the number of arenas."""
MALLOC_ARENAS: Final = 1
"""The number of glibc's arenas. Each thread that allocates has an arena of its own by default, and memory that another
thread frees stays in it: 3 kB a disk. Python's lock lets one thread allocate at a time anyway.
"""


def tune_runtime() -> None:
    """Set the thresholds of the garbage collector, exempt all objects that exist now from collection, and limit the
    arenas of malloc. Call it before threads start.
    """
    gc.freeze()
    gc.set_threshold(*CYCLES)
    with suppress(AttributeError):  # a C library other than glibc
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, MALLOC_ARENAS)
