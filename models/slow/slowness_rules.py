"""The rules by which disks and hosts count as slow. A start without a cluster reads them without numpy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SlownessRule:
    """A rule for slowness. `seconds`: a period. `ratio`: the least effect. `running`: number of periods in a row.

    `clears_at`: a disk is no longer slow once its ratio has been below this for as many periods in a row.
    `gap_seconds`: after a longer silence the count starts again.
    """

    seconds: int
    ratio: float
    running: int
    clears_at: float
    gap_seconds: int


DAY = 86_400
DISKS = SlownessRule(seconds=DAY, ratio=1.2, running=3, clears_at=1.1, gap_seconds=7 * DAY)
"""Slow enough for a drain. 1.2 is the ratio at which a drain holds its own work to protect the clients."""
HOSTS = SlownessRule(seconds=DAY, ratio=1.5, running=3, clears_at=1.25, gap_seconds=7 * DAY)
"""Hosts differ for good reasons (hardware, workload), so a slow host is only reported."""
HOURS = SlownessRule(seconds=3_600, ratio=1.5, running=3, clears_at=1.2, gap_seconds=DAY)
"""Slow enough to lose the primary role, which can be given back as easily."""
