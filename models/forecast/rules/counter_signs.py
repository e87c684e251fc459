"""Signs from counters: a rise within the last days is strong evidence, an old level a weak one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from predrain.data.outlook import Advice, Reason
from predrain.features.drive_state import DriveState, Face
from predrain.models.forecast.rules.fleet_levels import LEVELS, DriveKind, get_worst_limit
from predrain.models.forecast.rules.fuzzy_evidence import BAD, WARNING, DefectSign
from predrain.models.forecast.rules.latest_rises import SATURATED, describe_unchanged, find_recent_rise
from predrain.models.forecast.rules.membership_functions import RAMPS

OUTRIGHT: Final = 0.9
"""Degree of new errors that a drive could not correct, because data were lost already."""
LINK_DAYS: Final = 30
"""Days without a rise after which an old count of CRC errors is no evidence any more."""
STAYS: Final = "Does not clear: the count stays; it weighs no more while nothing is added."
MENDED: Final = "Clears when the sectors are rewritten and none is added."


@dataclass(frozen=True, slots=True)
class CounterRule:
    """The rule for one counter. `level`, `risen`: degree of an old count (None: no sign) and of a gain in `days`."""

    counter: str
    what: str
    code: str
    rule: str
    days: int
    level: Callable[[float], float] | None
    risen: Callable[[float], float]
    hard: bool = False
    aside: str = ""
    """A sentence on the meaning of such a rise in other fleets."""
    cause: str = ""
    """The cause of the counter; only the strongest of the signs with one cause counts. Empty: the cause is the rule
    itself."""
    old: Advice = Advice.REPLACE_SOON
    """The advice for a count that has not risen lately."""
    falls: bool = False
    """True if the count goes down when the defects are repaired."""
    forecast: bool = False
    """True if the forecast of hard disks weighs the counter, too."""

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the reasons that the rule can give."""
        rose, old = f"{self.code}-rose", f"{self.code}-old"
        return (rose,) if self.level is None else (rose, old)

    def find_signs(self, state: DriveState, face: Face) -> Iterator[DefectSign]:
        """Yield at most one sign: the rise, else the old count."""
        count: int | None = getattr(face.counters, self.counter)
        if not count or count >= SATURATED:
            return
        cause = self.cause or self.rule
        recent = find_recent_rise(state, self.counter, self.days)
        if recent is not None:
            standing = self.level(recent.now) if self.level is not None else 0.0
            degree = max(self.risen(recent.gain), standing)
            reason = Reason(f"{self.code}-rose", f"{self.what} {recent}.{self.aside}", self.counter)
            advice = Advice.DRAIN_NOW if degree >= BAD else Advice.REPLACE_SOON
            stays = standing >= WARNING
            clears = f"{'Falls to a warning' if stays else 'Clears'} when nothing rises for {self.days} days."
            advice = advice if degree >= WARNING else Advice.WATCH
            yield DefectSign(
                self.rule, degree, cause, reason, advice, clears, self.hard, self.forecast, noted=True
            )
        elif self.level is not None and (degree := self.level(count)) > 0:
            told = f"{self.what}: {count:,}, {describe_unchanged(state, self.days)}."
            clears = MENDED if self.falls else STAYS
            reason = Reason(f"{self.code}-old", told, self.counter)
            yield DefectSign(self.rule, degree, cause, reason, self.old, clears, forecast=self.forecast)


def _get_outright_degree(_: float) -> float:
    return OUTRIGHT


_UNREADABLE: Final = "disk-sectors"
_PENDING: Final = CounterRule(
    "pending",
    "Pending sectors",
    "pending",
    "disk-pending",
    7,
    LEVELS[DriveKind.HARD_DISK, "pending"],
    RAMPS["sectors-rise"],
    cause=_UNREADABLE,
    old=Advice.SELF_TEST,
    falls=True,
    forecast=True,
)
HARD_DISK: Final = (
    _PENDING,
    CounterRule(
        "offline_uncorrectable",
        "Offline uncorrectable sectors",
        "offline-uncorrectable",
        "disk-offline",
        7,
        LEVELS[DriveKind.HARD_DISK, "offline_uncorrectable"],
        RAMPS["sectors-rise"],
        cause=_UNREADABLE,
        old=Advice.SELF_TEST,
        falls=True,
        forecast=True,
    ),
    CounterRule(
        "reported_uncorrectable",
        "Uncorrectable errors",
        "uncorrectable",
        "disk-errors",
        7,
        LEVELS[DriveKind.HARD_DISK, "reported_uncorrectable"],
        RAMPS["sectors-rise"],
        old=Advice.SELF_TEST,
        forecast=True,
    ),
    CounterRule(
        "reallocated",
        "Reallocated sectors",
        "reallocated",
        "disk-reallocated",
        7,
        LEVELS[DriveKind.HARD_DISK, "reallocated"],
        RAMPS["remapped-rise"],
        old=Advice.SELF_TEST,
        forecast=True,
    ),
    CounterRule(
        "end_to_end_errors",
        "End-to-end errors",
        "end-to-end",
        "disk-end-to-end",
        7,
        LEVELS[DriveKind.HARD_DISK, "end_to_end_errors"],
        RAMPS["end-to-end-rise"],
    ),
    CounterRule(
        "command_timeouts",
        "Command timeouts",
        "timeouts",
        "disk-timeouts",
        7,
        LEVELS[DriveKind.HARD_DISK, "command_timeouts"],
        RAMPS["timeouts-rise"],
        old=Advice.WATCH,
        forecast=True,
    ),
)
NVME: Final = (
    CounterRule(
        "media_errors",
        "Media errors",
        "media-errors",
        "media-errors",
        7,
        LEVELS[DriveKind.NVME, "media_errors"],
        _get_outright_degree,
        True,
    ),
)
SSD: Final = (
    CounterRule(
        "reported_uncorrectable",
        "Uncorrectable errors",
        "uncorrectable",
        "ssd-errors",
        7,
        LEVELS[DriveKind.SATA_SSD, "reported_uncorrectable"],
        _get_outright_degree,
        True,
    ),
    CounterRule(
        "reallocated",
        "Reallocated sectors",
        "reallocated",
        "ssd-reallocated",
        7,
        LEVELS[DriveKind.SATA_SSD, "reallocated"],
        RAMPS["reallocated-rise"],
        aside=" In one model 38 % of failing drives had any two days before, 89 % one.",
    ),
    CounterRule(
        "end_to_end_errors",
        "End-to-end errors",
        "end-to-end",
        "ssd-end-to-end",
        7,
        LEVELS[DriveKind.SATA_SSD, "end_to_end_errors"],
        RAMPS["end-to-end-rise"],
    ),
    CounterRule(
        "pending",
        "Pending sectors",
        "pending",
        "ssd-pending",
        7,
        LEVELS[DriveKind.SATA_SSD, "pending"],
        RAMPS["reallocated-rise"],
        cause="ssd-sectors",
        falls=True,
    ),
    CounterRule(
        "offline_uncorrectable",
        "Offline uncorrectable sectors",
        "offline-uncorrectable",
        "ssd-offline",
        7,
        LEVELS[DriveKind.SATA_SSD, "offline_uncorrectable"],
        RAMPS["reallocated-rise"],
        cause="ssd-sectors",
        falls=True,
    ),
)
SAS: Final = (
    CounterRule(
        "uncorrected_errors",
        "Uncorrected errors",
        "uncorrected-errors",
        "sas-uncorrected",
        14,
        RAMPS["uncorrected"],
        _get_outright_degree,
        True,
    ),
    replace(_PENDING, what="Pending defects", rule="sas-pending", forecast=False),
    CounterRule(
        "grown_defects",
        "Grown defects",
        "grown-defects",
        "sas-defects",
        14,
        LEVELS[DriveKind.HARD_DISK, "reallocated"],
        RAMPS["grown-defects-rise"],
    ),
)


def find_cable_sign(state: DriveState, face: Face) -> Iterator[DefectSign]:
    """Yield the sign of CRC errors, which are errors of the link. Failed SSDs have them no more often than other SSDs.

    The count stays when the cable is replaced, so an old count is a sign only until it has not risen for a month.
    """
    count = face.counters.crc_errors or 0
    if (recent := find_recent_rise(state, "crc_errors", 7)) is not None:
        reason = Reason("crc-rose", f"CRC errors {recent}.", "crc_errors")
        clears = "Clears when CRC errors stand still for 7 days."
    elif _is_worst_link(face, count) and state.day - state.first_day < LINK_DAYS:
        reason = Reason(
            "crc-old", f"CRC errors: {count:,}, {describe_unchanged(state, LINK_DAYS)}.", "crc_errors"
        )
        clears = f"Clears when CRC errors stand still for {LINK_DAYS} days."
    else:
        return
    yield DefectSign("cable", 0.0, "cable", reason, Advice.CHECK_CABLE, clears, forecast=True, noted=True)


def _is_worst_link(face: Face, count: int) -> bool:
    kind = DriveKind.SATA_SSD if face.rotation_rpm == 0 else DriveKind.HARD_DISK
    return get_worst_limit(kind, "crc_errors") <= count < SATURATED


def explain_transport_errors(_: DriveState, face: Face) -> tuple[Reason, ...]:
    """Explain non-medium errors of a SAS drive as context beside a sign. They are no sign themselves."""
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
