"""How Python itself is set in a process that runs for long."""

from __future__ import annotations

import gc

CYCLES = (100_000, 50, 100)
"""Readings and outlooks hold no cycles: looking for some among all that is remembered took a quarter of the time."""


def tune() -> None:
    """Set it. What was imported by now is looked at no more."""
    gc.freeze()
    gc.set_threshold(*CYCLES)
