"""How much one step of a worker did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Worked:
    """What one step did."""

    taken: int = 0
    """Records that left the log."""
    dead: int = 0
    """Of them, those that went to the dead letters."""
    outlooks: int = 0
    alerts: int = 0
    moved: int = 0
    """Disks of which it was settled in which host they live."""
    waited: timedelta = timedelta(0)
    """Since the newest of the readings came in."""


def sum_worked(parts: Sequence[Worked]) -> Worked:
    """Outlooks and alerts of all parts of a step."""
    return Worked(
        outlooks=sum(one.outlooks for one in parts),
        alerts=sum(one.alerts for one in parts),
        moved=sum(one.moved for one in parts),
    )
