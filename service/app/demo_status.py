"""The progress of a demo, as the page shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemoRow:
    """One line of the demo's closing table."""

    what: str
    with_predrain: str | float | None
    without: str | float | None


@dataclass(frozen=True, slots=True)
class DemoStatus:
    """The progress of a demo; `rows` stay empty until the closing table exists."""

    day: int
    days: int
    seed: int
    seconds_per_day: float
    note: str
    rows: tuple[DemoRow, ...] = ()
