"""Whether processes have ended. A kill is only asked for: the kernel does it when it comes to it."""

from __future__ import annotations

import time
from pathlib import Path

from tests.deadlines import idle_seconds

LONG_ENOUGH = 10.0
"""Seconds."""


def runs(pid: int) -> bool:
    """False for one that is gone, or that nobody has waited for yet (a zombie)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def ends(pid: int) -> bool:
    """Whether it is gone, or a zombie, before long."""
    until = idle_seconds() + LONG_ENOUGH
    while runs(pid) and idle_seconds() < until:
        time.sleep(0.01)
    return not runs(pid)
