"""Settings of the Python runtime for a process that runs for long."""

from __future__ import annotations

import gc

CYCLES = (100_000, 50, 100)
"""Thresholds of the garbage collector. Readings and outlooks hold no cycles, and the search for cycles took a
quarter of the time.
"""


def tune_garbage_collector() -> None:
    """Set the thresholds, and exempt all objects that exist now from collection."""
    gc.freeze()
    gc.set_threshold(*CYCLES)
