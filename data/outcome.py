"""What became of a disk. Training and the forecast's own score keeping read it; a drained disk is not a healthy one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from data.ids import DeviceId


class Fate(StrEnum):
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
    fate: Fate
    source: str
    """Who says so: a caller's name, or the rule."""
    note: str = ""
