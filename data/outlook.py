"""The forecast of a disk: the outlook, its confidence, its reasons, and the advice."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, overload

from predrain.data.ids import DeviceId

GRID_DAYS: tuple[int, ...] = (
    *range(61),
    *range(67, 366, 7),
    *range(390, 3651, 30),
)
"""Days at which a survival curve is given: daily to 60, weekly to 365, then every 30 up to 3,650."""


class SurvivalCurve(Sequence[float]):
    """The points of a survival curve along GRID_DAYS: an immutable sequence of floats.

    The complement of each point, the chance to have failed by that day, is kept as a float of 4 bytes. This keeps seven
    digits of a small chance as of a large one. As objects in a tuple the points take 7 kB, and as floats of 8 bytes
    they took a tenth of the memory that a service needs for a disk. A curve made of the points of another curve is
    equal to that one.
    """

    __slots__ = ("_failed",)

    def __init__(self, points: Iterable[float]) -> None:
        self._failed = array("f", map((1.0).__sub__, points)).tobytes()

    @classmethod
    def from_failure_chances(cls, packed: bytes) -> SurvivalCurve:
        """Make a curve of the chances to have failed, packed as C floats."""
        made = cls.__new__(cls)
        made._failed = packed
        return made

    def pack_failure_chances(self) -> bytes:
        """Return the chances to have failed as C floats, for `from_failure_chances`."""
        return self._failed

    def __len__(self) -> int:
        return len(self._failed) // 4

    @overload
    def __getitem__(self, place: int) -> float: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[float, ...]: ...
    def __getitem__(self, place: int | slice) -> float | tuple[float, ...]:
        failed = memoryview(self._failed).cast("f")
        return 1.0 - failed[place] if isinstance(place, int) else tuple(1.0 - each for each in failed[place])

    def __iter__(self) -> Iterator[float]:
        return map((1.0).__sub__, memoryview(self._failed).cast("f").tolist())

    def __eq__(self, other: object) -> bool:
        return self._failed == other._failed if isinstance(other, SurvivalCurve) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._failed)

    def __repr__(self) -> str:
        return f"SurvivalCurve({list(self)})"


RULE_SOURCE: Final = "rule:"
MODEL_SOURCE: Final = "model:"
"""The two beginnings of `Outlook.source`. Programs read `Outlook.rule` and `Outlook.bundle`."""


class Status(StrEnum):
    """The severity of a forecast, in Ceph's words. Only BAD proposes a drain by itself."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    UNKNOWN = "unknown"


class Advice(StrEnum):
    """The actions that an outlook can advise for a disk."""

    DRAIN_NOW = "drain-now"
    REPLACE_SOON = "replace-soon"
    SWAP_WORN = "swap-worn"
    CHECK_CABLE = "check-cable"
    SELF_TEST = "self-test"
    COOL = "cool"
    LOOK = "look"
    """The disk cannot be read: check whether it is there."""
    WATCH = "watch"
    NOTHING = "nothing"

    @property
    def sentence(self) -> str:
        """The prescription in words."""
        return ADVICE_TEXTS[self]


ADVICE_TEXTS: Mapping[Advice, str] = {
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
    """One fact that moved the outlook; the most important comes first. Programs read `code`; people read `sentence`."""

    code: str
    """A code of a closed list, e.g. `pending-rose`, `verdict-failed`, `model-and-age`."""
    sentence: str
    """The fact with its numbers, window and limit: "Pending sectors rose on 5 of the last 7 days, 0 to 48."."""
    counter: str | None = None
    """The counter of the fact (a field of `Counters`, or `smart_N`), so that a chart can mark it."""


@dataclass(frozen=True, slots=True)
class Life:
    """Days until 10 %, 50 % and 90 % of such disks have failed; None: beyond the grid ("over 10 years")."""

    p10_days: float | None
    p50_days: float | None
    p90_days: float | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """The forecast of one device at one instant.

    In a rule's outlook (source `rule:<name>`), `rule_score` is the strength of the rule's evidence. Such an outlook
    has probabilities and a curve only if the model also judges the drive, with a milder status; else those fields are
    None.

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
    survival: SurvivalCurve | None = None
    life: Life | None = None
    hard: bool = False
    """True for hard evidence: a FAILED verdict, an SSD's media errors, a device that cannot be read."""
    readings: int = 0
    """Number of readings in a row that support this status."""
    span_hours: float = 0.0
    """Hours that these readings span. The `measure_status_persistence` guard checks both numbers."""
    rule_score: float | None = None
    """The strength of a rule's evidence, 0 (none) to 1 (the drive reports it itself). It is no probability. None: a
    model judged."""
    advice: Advice | None = None
    """The prescription for programs. None: the outlook is older than this field, or its prescription is not in the
    list."""
    clears: str = ""
    """One sentence about the event that would clear the status; empty if there is nothing to clear."""
    endurance: Life | None = None
    """Days until a flash drive's rated life is used up, by the slope of its own wear counter; this is no failure."""
    held: Status | None = None
    """The graver status that still counts because too few readings support the milder `status`; None: there is none."""

    @property
    def rule(self) -> str | None:
        """The name of the rule that judged the disk, or None if a model judged it."""
        return self.source.removeprefix(RULE_SOURCE) if self.source.startswith(RULE_SOURCE) else None

    @property
    def bundle(self) -> str | None:
        """The name of the bundle whose model judged the disk, or None if a rule judged it."""
        return self.source.removeprefix(MODEL_SOURCE) if self.source.startswith(MODEL_SOURCE) else None

    @property
    def severity(self) -> Status:
        """The severity of the disk for every reader: it gets worse at once, and better after `CALM_READINGS`."""
        return self.held or self.status


GRAVITY: Final = {Status.UNKNOWN: 0, Status.GOOD: 0, Status.WARNING: 1, Status.BAD: 2}
CALM_READINGS: Final = 3
"""Readings in a row that must agree before a disk is called better."""


def borne_out(outlook: Outlook, before: Outlook | None) -> Outlook:
    """Return the outlook with the readings in a row, and their hours, that support its status (or a graver one)."""
    readings, span_hours = measure_status_persistence(outlook.status, outlook.as_of, before)
    held = hold_severity(outlook.status, readings, before)
    return replace(outlook, readings=readings, span_hours=span_hours, held=held)


def hold_severity(status: Status, readings: int, before: Outlook | None) -> Status | None:
    """Return the graver severity of `before` that still counts beside `status`; None if `status` counts.

    No other rule lets a disk get better. A disk that could not be judged has not got better. `readings` is the number
    of readings in a row that support `status`.
    """
    if before is None or GRAVITY[before.severity] <= GRAVITY[status]:
        return None
    return None if status is not Status.UNKNOWN and readings >= CALM_READINGS else before.severity


def measure_status_persistence(status: Status, as_of: datetime, before: Outlook | None) -> tuple[int, float]:
    """Return the readings in a row that support `status` (or a graver one), and their hours, counted on
    from `before`.
    """
    if before is None or GRAVITY[before.status] < GRAVITY[status]:
        return 1, 0.0
    passed = (as_of - before.as_of).total_seconds() / 3600
    if passed <= 0:
        return max(before.readings, 1), before.span_hours
    if GRAVITY[before.status] > GRAVITY[status]:
        return 1, 0.0
    return before.readings + 1, before.span_hours + passed
