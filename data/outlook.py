"""What is forecast of a disk, how sure, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from data.ids import DeviceId

GRID_DAYS: tuple[int, ...] = (
    *range(61),
    *range(67, 366, 7),
    *range(390, 3651, 30),
)
"""Days at which a survival curve is given: daily to 60, weekly to 365, then every 30 up to 3,650."""


class Status(StrEnum):
    """Ceph's words. Only BAD proposes a drain by itself."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Reason:
    """One fact that moved the outlook, most telling first. Programs read `code`; people read `sentence`."""

    code: str
    """From a closed list, e.g. `pending-rose`, `verdict-failed`, `model-and-age`."""
    sentence: str
    """With its numbers, window and limit: "Pending sectors rose on 5 of the last 7 days, 0 to 48."."""
    counter: str | None = None
    """The counter that it speaks of (a field of `Counters`, or `smart_N`), so that a chart can mark it."""


@dataclass(frozen=True, slots=True)
class Life:
    """Days until one in ten, half and nine in ten such disks have failed; None: beyond the grid ("over 10 years")."""

    p10_days: float | None
    p50_days: float | None
    p90_days: float | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """The forecast of one device at one instant.

    A rule's outlook (source `rule:<name>`) shows no probability and no curve: those fields are None.
    Invariant: p_fail_7d <= p_fail_14d <= p_fail_30d, all in [0, 1]; `survival` falls along GRID_DAYS from 1.
    """

    device: DeviceId
    as_of: datetime
    status: Status
    source: str
    """`model:<bundle>` or `rule:<name>`."""
    reasons: tuple[Reason, ...]
    prescription: str
    p_fail_7d: float | None = None
    p_fail_14d: float | None = None
    p_fail_30d: float | None = None
    survival: tuple[float, ...] | None = None
    life: Life | None = None
    hard: bool = False
    """Hard evidence: a FAILED verdict, an SSD's media errors, a device that cannot be read."""
    readings: int = 0
    """How many readings in a row bear this status out..."""
    span_hours: float = 0.0
    """...and over how many hours. The `trust` guard asks for both."""
