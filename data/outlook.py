"""What is forecast of a disk, how sure, why, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from predrain.data.ids import DeviceId

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


class Advice(StrEnum):
    """What to do about a disk: the closed list behind every prescription."""

    DRAIN_NOW = "drain-now"
    REPLACE_SOON = "replace-soon"
    SWAP_WORN = "swap-worn"
    CHECK_CABLE = "check-cable"
    SELF_TEST = "self-test"
    COOL = "cool"
    LOOK = "look"
    """It cannot be read: see whether it is there."""
    WATCH = "watch"
    NOTHING = "nothing"

    @property
    def sentence(self) -> str:
        """The prescription in words."""
        return _PRESCRIPTIONS[self]


_PRESCRIPTIONS: Mapping[Advice, str] = {
    Advice.DRAIN_NOW: "Drain it now and replace the disk.",
    Advice.REPLACE_SOON: "Plan to replace it soon, and run a long self-test.",
    Advice.SWAP_WORN: "Plan the replacement of a worn drive; wear alone marked 4 % of failed SSDs.",
    Advice.CHECK_CABLE: "Check cable or backplane, not the disk.",
    Advice.SELF_TEST: "Run a long self-test.",
    Advice.COOL: "Look to its cooling; the disk itself says nothing worse.",
    Advice.LOOK: "Look whether the device, its cable and its host are there; if it stays away, replace it.",
    Advice.WATCH: "Watch it.",
    Advice.NOTHING: "Nothing to do.",
}


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

    In a rule's outlook (source `rule:<name>`) `rule_score` says how strongly its signs speak. It shows probabilities
    and a curve only where the forecast judges the drive too, less gravely; else those fields are None.
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
    rule_score: float | None = None
    """A rule's evidence, 0 (none) to 1 (the drive says so itself); no chance of anything. None: a model judged it."""
    advice: Advice | None = None
    """The prescription for programs; None: it was written before this was kept, or fits none of the list."""
    clears: str = ""
    """What would clear it, one sentence; empty where there is nothing to clear."""
    endurance: Life | None = None
    """Days until a flash drive's rated life is used up, by the slope of its own wear counter; no failure then."""
    held: Status | None = None
    """The graver status that still counts, because too few readings bear the milder `status` out; None: none does."""

    @property
    def severity(self) -> Status:
        """How ill the disk is, as every reader is told: it gets worse at once, and better after `CALM_READINGS`."""
        return self.held or self.status


GRAVITY: Final = {Status.UNKNOWN: 0, Status.GOOD: 0, Status.WARNING: 1, Status.BAD: 2}
CALM_READINGS: Final = 3
"""Readings in a row that must agree before a disk is called better."""


def borne_out(outlook: Outlook, before: Outlook | None) -> Outlook:
    """The outlook with how many readings in a row, over how many hours, bear its status (or a graver one) out."""
    readings, span_hours = trust(outlook.status, outlook.as_of, before)
    held = hold_severity(outlook.status, readings, before)
    return replace(outlook, readings=readings, span_hours=span_hours, held=held)


def hold_severity(status: Status, readings: int, before: Outlook | None) -> Status | None:
    """The graver severity of `before` that still counts beside `status`; None where `status` counts.

    This is the one rule of how a disk gets better. A disk that could not be judged has not got better.
    readings: how many in a row bear `status` out.
    """
    if before is None or GRAVITY[before.severity] <= GRAVITY[status]:
        return None
    return None if status is not Status.UNKNOWN and readings >= CALM_READINGS else before.severity


def trust(status: Status, as_of: datetime, before: Outlook | None) -> tuple[int, float]:
    """Readings in a row that bear `status` (or a graver one) out, and over how many hours, counted on from `before`."""
    if before is None or GRAVITY[before.status] < GRAVITY[status]:
        return 1, 0.0
    passed = (as_of - before.as_of).total_seconds() / 3600
    if passed <= 0:
        return max(before.readings, 1), before.span_hours
    if GRAVITY[before.status] > GRAVITY[status]:
        return 1, 0.0
    return before.readings + 1, before.span_hours + passed
