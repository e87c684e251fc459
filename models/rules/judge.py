"""The verdict: which signs are asked of which drive, and what follows from all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from predrain.data.error_counts import SAS_COUNTERS
from predrain.data.outlook import Advice, Life, Reason, Status
from predrain.data.reading import Protocol
from predrain.features.state import DriveState, Face, Probe
from predrain.models.family import maker_of
from predrain.models.rules.counts import HARD_DISK, NVME, SAS, SSD, find_cable_sign, transport
from predrain.models.rules.endurance import rated_life
from predrain.models.rules.events import find_io_error_signs, find_self_test_sign
from predrain.models.rules.evidence import NOTED, WARNING, Sign, ordered, score_of, status_of
from predrain.models.rules.flash import critical_warning, spare, wear

CODES: Final = (
    "unreadable",
    "verdict-failed",
    "verdict-worn",
    "nvme-read-only",
    "nvme-unreliable",
    "nvme-hot",
    "spare-low",
    "worn-out",
    "wearing-out",
    *dict.fromkeys(code for one in (*NVME, *SSD, *SAS, *HARD_DISK) for code in one.codes),
    "self-test-failed",
    "io-errors",
    "io-errors-old",
    "io-errors-shared",
    "crc-rose",
    "crc-old",
    "non-medium",
    "no-sign",
    "nothing-reported",
)
"""Every code that a rule's reason can carry."""
UNREADABLE_PROBES: Final = 2
"""Failed probes in a row from which a drive counts as unreadable; the first may be a hiccup."""
CERTAIN: Final = 1.0


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """What a rule says."""

    rule: str
    status: Status
    reasons: tuple[Reason, ...]
    score: float | None
    """Evidence in [0, 1]; None where nothing could be judged."""
    advice: Advice
    clears: str = ""
    hard: bool = False
    unread: bool = False
    """A sign of it that warns by itself is none that the forecast of hard disks weighs."""
    endurance: Life | None = None
    """Days until its rated life is used up; None while the slope of its wear is unknown."""


def judge(state: DriveState) -> RuleVerdict | None:
    """The rules' verdict, or None for a readable hard disk that reports error counts, which the model judges."""
    face = state.face
    probe = state.unreadable
    if probe is not None and probe.probes >= UNREADABLE_PROBES:
        return _unreadable(probe)
    if probe is not None and probe.host_probes >= UNREADABLE_PROBES:
        return _unasked(probe)
    if face is None:
        never = Reason("nothing-reported", "It has not been read yet.")
        return RuleVerdict("no-reading", Status.UNKNOWN, (never,), None, Advice.LOOK)
    found = _collect_signs(state, face)
    if _is_forecast(face) and not any(sign.hard for sign in found):
        return None
    return _verdict(state, face, found)


def judge_symptoms(state: DriveState) -> RuleVerdict | None:
    """The rules' verdict of a drive that `judge` leaves to the forecast; None where it shows no sign.

    It stands in for a forecast that knows nothing of the drive, and is a floor below one that does.
    """
    if state.face is None:
        return None
    found = _collect_signs(state, state.face)
    return _verdict(state, state.face, found) if found else None


def _collect_signs(state: DriveState, face: Face) -> tuple[Sign, ...]:
    return ordered(sign for ask in _asked(face) for sign in ask(state, face))


def _is_forecast(face: Face) -> bool:
    if face.protocol is Protocol.SCSI:
        return bool(face.rotation_rpm) and any(
            getattr(face.counters, name) is not None for name in SAS_COUNTERS.values()
        )
    return face.protocol is Protocol.ATA and not is_ssd(face)


def is_ssd(face: Face) -> bool:
    """Whether an ATA drive has no platters; where rotation is not told, a known hard-disk maker's model has."""
    if face.rotation_rpm is not None:
        return face.rotation_rpm == 0
    return "SSD" in face.model.upper() or maker_of(face.model) is None


Ask = Callable[[DriveState, Face], Iterator[Sign]]


def _asked(face: Face) -> tuple[Ask, ...]:
    always: tuple[Ask, ...] = (_own_verdict, find_self_test_sign, find_io_error_signs)
    if face.protocol is Protocol.NVME:
        return (*always, critical_warning, spare, wear, *(one.signs for one in NVME))
    if face.protocol is Protocol.SCSI:
        return (*always, spare, wear, *(one.signs for one in SAS))
    if is_ssd(face):
        return (*always, spare, wear, *(one.signs for one in SSD), find_cable_sign)
    return (*always, *(one.signs for one in HARD_DISK), find_cable_sign)


def _own_verdict(_: DriveState, face: Face) -> Iterator[Sign]:
    # NVMe's verdict is made of the bits of its critical warning, which are told apart where they are known.
    if face.passed is False and not face.counters.critical_warning:
        reason = Reason("verdict-failed", "The drive's own verdict is FAILED.")
        clears = "Clears when the drive takes its verdict back."
        yield Sign("verdict", CERTAIN, "device", reason, Advice.DRAIN_NOW, clears, hard=True)


def _verdict(state: DriveState, face: Face, found: tuple[Sign, ...]) -> RuleVerdict:
    endurance = rated_life(state.changes.get("percentage_used", ()), state.day)
    if not found:
        return _quiet(face, endurance)
    first, score = found[0], score_of(found)
    status = status_of(score)
    reasons = (*(sign.reason for sign in found), *transport(state, face))
    if status is Status.GOOD:
        return RuleVerdict(first.rule, status, reasons, score, _mild_advice(found), endurance=endurance)
    advice = Advice.DRAIN_NOW if status is Status.BAD else _warning_advice(found)
    hard = any(sign.hard for sign in found)
    unread = any(sign.degree >= WARNING and not sign.forecast for sign in found)
    return RuleVerdict(first.rule, status, reasons, score, advice, first.clears, hard, unread, endurance)


def _warning_advice(found: tuple[Sign, ...]) -> Advice:
    """The prescription of the strongest sign; where I/O errors are, that of the drive's own or of its cable first."""
    others = [sign for sign in found if sign.rule != "io-errors"]
    own = next((sign.advice for sign in others if sign.degree >= WARNING), None)
    return own or next((sign.advice for sign in others if sign.cause == "cable"), found[0].advice)


def _mild_advice(found: tuple[Sign, ...]) -> Advice:
    """The prescription for signs that come to no warning. Errors that rise are never nothing to do."""
    noted = {sign.advice for sign in found if sign.noted or sign.degree >= NOTED}
    return Advice.CHECK_CABLE if Advice.CHECK_CABLE in noted else Advice.WATCH if noted else Advice.NOTHING


def _unasked(probe: Probe) -> RuleVerdict:
    """The host is at fault: nothing is known of the disk, and nothing speaks against it."""
    told = f"Its host has read no disk since {probe.since:%d %b %H:%M}: {probe.why.rstrip('.')}."
    return RuleVerdict("no-reading", Status.UNKNOWN, (Reason("nothing-reported", told),), None, Advice.LOOK)


def _unreadable(probe: Probe) -> RuleVerdict:
    sentence = (
        f"No reading since {probe.since:%d %b %H:%M}, {probe.probes} probes failed: {probe.why.rstrip('.')}."
    )
    clears = "Clears with the next reading that succeeds."
    reason = Reason("unreadable", sentence)
    return RuleVerdict("unreadable", Status.BAD, (reason,), CERTAIN, Advice.LOOK, clears, hard=True)


def _quiet(face: Face, endurance: Life | None) -> RuleVerdict:
    counters = face.counters
    told = any(
        value is not None
        for value in (
            counters.media_errors,
            counters.percentage_used,
            counters.reallocated,
            counters.grown_defects,
            counters.uncorrected_errors,
            counters.critical_warning,
            counters.reported_uncorrectable,
            counters.available_spare_pct,
            face.passed,
        )
    )
    if not told:
        why = Reason(
            "nothing-reported", "The drive reports neither a verdict nor a counter that could be judged."
        )
        return RuleVerdict("nothing-reported", Status.UNKNOWN, (why,), None, Advice.WATCH)
    why = Reason("no-sign", "No warning sign; there is no failure model for this kind of drive, only rules.")
    return RuleVerdict("no-sign", Status.GOOD, (why,), 0.0, Advice.NOTHING, endurance=endurance)
