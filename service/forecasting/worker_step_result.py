"""The counts of one step of a worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class WorkerStepResult:
    """The counts of one step."""

    taken: int = 0
    """Records that were consumed from the log."""
    dead: int = 0
    """The consumed records that became dead letters."""
    outlooks: int = 0
    alerts: int = 0
    moved: int = 0
    """Disks whose host was settled."""
    waited: timedelta = timedelta(0)
    """The time since the newest of the readings was received."""


def sum_worked(parts: Sequence[WorkerStepResult]) -> WorkerStepResult:
    """Return the sums of outlooks, alerts and moves over all parts of a step."""
    return WorkerStepResult(
        outlooks=sum(one.outlooks for one in parts),
        alerts=sum(one.alerts for one in parts),
        moved=sum(one.moved for one in parts),
    )
