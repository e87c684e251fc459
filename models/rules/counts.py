"""Signs of counters: a rise within days speaks, an old level hardly does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from data.outlook import Advice, Reason
from features.state import DriveState, Face
from models.rules.evidence import BAD, WARNING, Sign
from models.rules.past import SATURATED, rise, unchanged
from models.rules.ramps import RAMPS

OUTRIGHT: Final = 0.9
"""Degree of new errors that a drive could not correct: data were lost already."""


@dataclass(frozen=True, slots=True)
class Counted:
    """How one counter is judged. `level`, `risen`: degree of an old count (None: no sign) and of a gain in `days`."""

    counter: str
    what: str
    code: str
    rule: str
    days: int
    level: Callable[[float], float] | None
    risen: Callable[[float], float]
    hard: bool = False
    aside: str = ""
    """What such a rise meant elsewhere."""

    @property
    def codes(self) -> tuple[str, ...]:
        """Of the reasons that it can give."""
        rose, old = f"{self.code}-rose", f"{self.code}-old"
        return (rose,) if self.level is None else (rose, old)

    def signs(self, state: DriveState, face: Face) -> Iterator[Sign]:
        """At most one: the rise, else the old count."""
        count: int | None = getattr(face.counters, self.counter)
        if not count or count >= SATURATED:
            return
        recent = rise(state, self.counter, self.days)
        if recent is not None:
            degree = self.risen(recent.gained)
            reason = Reason(f"{self.code}-rose", f"{self.what} {recent}.{self.aside}", self.counter)
            advice = Advice.DRAIN_NOW if degree >= BAD else Advice.REPLACE_SOON
            stays = self.level is not None and self.level(recent.now) >= WARNING
            clears = f"{'Falls to a warning' if stays else 'Clears'} when nothing rises for {self.days} days."
            yield Sign(self.rule, degree, self.rule, reason, advice, clears, self.hard)
        elif self.level is not None and (degree := self.level(count)) > 0:
            told = f"{self.what}: {count:,}, {unchanged(state, self.days)}."
            clears = "Does not clear: the count stays; it weighs no more while nothing is added."
            reason = Reason(f"{self.code}-old", told, self.counter)
            yield Sign(self.rule, degree, self.rule, reason, Advice.REPLACE_SOON, clears)


def _outright(_: float) -> float:
    return OUTRIGHT


MEDIA = Counted(
    "media_errors", "Media errors", "media-errors", "media-errors", 7, RAMPS["media-errors"], _outright, True
)
NVME: Final = (MEDIA,)
SSD: Final = (
    Counted(
        "reported_uncorrectable",
        "Uncorrectable errors",
        "uncorrectable",
        "ssd-errors",
        7,
        RAMPS["uncorrectable"],
        _outright,
        True,
    ),
    MEDIA,
    Counted(
        "reallocated",
        "Reallocated sectors",
        "reallocated",
        "ssd-reallocated",
        7,
        RAMPS["reallocated"],
        RAMPS["reallocated-rise"],
        aside=" In one model 38 % of failing drives had any two days before, 89 % one.",
    ),
    Counted(
        "end_to_end_errors",
        "End-to-end errors",
        "end-to-end",
        "ssd-end-to-end",
        7,
        None,
        RAMPS["end-to-end-rise"],
    ),
)
SAS: Final = (
    Counted(
        "uncorrected_errors",
        "Uncorrected errors",
        "uncorrected-errors",
        "sas-uncorrected",
        14,
        RAMPS["uncorrected"],
        _outright,
        True,
    ),
    Counted(
        "grown_defects",
        "Grown defects",
        "grown-defects",
        "sas-defects",
        14,
        RAMPS["grown-defects"],
        RAMPS["grown-defects-rise"],
    ),
)


def cable(state: DriveState, _: Face) -> Iterator[Sign]:
    """New CRC errors: of the way to the drive, not of the drive. Failed SSDs have them no more often than others."""
    recent = rise(state, "crc_errors", 7)
    if recent is not None:
        reason = Reason("crc-rose", f"CRC errors {recent}.", "crc_errors")
        yield Sign(
            "cable",
            0.0,
            "cable",
            reason,
            Advice.CHECK_CABLE,
            "Clears when CRC errors stand still for 7 days.",
        )


def transport(_: DriveState, face: Face) -> tuple[Reason, ...]:
    """Non-medium errors of a SAS drive, as context beside a sign: they are no sign themselves."""
    count = face.counters.non_medium_errors
    if not count:
        return ()
    return (
        Reason(
            "non-medium",
            f"Non-medium errors: {count:,}; of transport, no sign by itself.",
            "non_medium_errors",
        ),
    )
