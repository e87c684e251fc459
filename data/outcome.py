"""The outcome of a disk, for training and for the forecast's own scores. A drained disk is not a healthy one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from predrain.data.ids import DeviceId


class OutcomeRule(StrEnum):
    """The source of a statement that a rule made."""

    OSD_DOWN = "rule:osd-down"
    """The OSD of the disk went down while it was to keep data: the disk is suspected."""
    OSD_LOST = "rule:osd-lost"
    """No OSD ran on the disk again, and the disk is gone: it failed (data.failed_disks)."""
    OSD_BACK = "rule:osd-back"
    """An OSD runs again on a disk that OSD_LOST declared failed: the disk did not fail."""


class DriveFate(StrEnum):
    """SUSPECTED stands until a person or a rule confirms it."""

    SUSPECTED = "suspected"
    FAILED = "failed"
    REMOVED = "removed"
    REPLACED = "replaced"
    CONFIRMED = "confirmed"
    CLEARED = "cleared"
    UNVERIFIED = "unverified"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One statement about a device's end. Append-only; the last one counts."""

    device: DeviceId
    at: datetime
    fate: DriveFate
    source: str
    """The author of the statement: a caller's name, or an `OutcomeRule`."""
    note: str = ""

    @property
    def is_by_rule(self) -> bool:
        """True if a rule made the statement."""
        return self.source in set(OutcomeRule)
