"""The verdict: the signs that are checked for each kind of drive, and the conclusion from all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from predrain.data.error_counts import SAS_COUNTERS
from predrain.data.outlook import Advice, Life, Reason, Status
from predrain.data.reading import Protocol
from predrain.features.drive_state import DriveState, Face, Probe
from predrain.models.forecast.drive_family import maker_of
from predrain.models.forecast.rules.counter_signs import (
    HARD_DISK,
    NVME,
    SAS,
    SSD,
    CounterRule,
    explain_transport_errors,
    find_cable_sign,
)
from predrain.models.forecast.rules.endurance import rated_life
from predrain.models.forecast.rules.event_signs import find_io_error_signs, find_self_test_sign
from predrain.models.forecast.rules.flash_signs import critical_warning, find_spare_sign, find_wear_sign
from predrain.models.forecast.rules.fuzzy_evidence import (
    NOTED,
    WARNING,
    DefectSign,
    score_of,
    sort_by_degree,
    status_of,
)

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
"""Failed probes in a row from which on a drive counts as unreadable. A single failure may be transient."""
CERTAIN: Final = 1.0


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """The verdict of the rules on one drive."""

    rule: str
    status: Status
    reasons: tuple[Reason, ...]
    score: float | None
    """Evidence in [0, 1]; None if nothing could be judged."""
    advice: Advice
    clears: str = ""
    hard: bool = False
    unread: bool = False
    """True if a sign that is a warning by itself is not weighed by the forecast of hard disks."""
    endurance: Life | None = None
    """Days until the rated life is used up; None while the slope of the wear is unknown."""


@dataclass(frozen=True, slots=True)
class DriveJudgement:
    """The verdicts of the rules on one drive, from one look at its signs."""

    verdict: RuleVerdict | None
    """The rules' verdict, or None for a readable hard disk that reports error counts, which the model judges."""
    symptoms: RuleVerdict | None = None
    """The rules' verdict on a drive that is left to the model, or None without a sign.

    The verdict replaces a forecast that has no data of the drive, and is a floor below one that has.
    """


_UNTOUCHED: Final = DriveJudgement(None)


def judge_drive(state: DriveState) -> DriveJudgement:
    """Judge a drive by the rules."""
    face = state.face
    probe = state.unreadable
    if probe is not None and probe.probes >= UNREADABLE_PROBES:
        return DriveJudgement(_judge_unreadable_drive(probe))
    if probe is not None and probe.host_probes >= UNREADABLE_PROBES:
        return DriveJudgement(_judge_unread_host(probe))
    if face is None:
        never = Reason("nothing-reported", "It has not been read yet.")
        return DriveJudgement(RuleVerdict("no-reading", Status.UNKNOWN, (never,), None, Advice.LOOK))
    found = _collect_signs(state, face)
    if not _is_forecast(face) or any(sign.hard for sign in found):
        return DriveJudgement(_combine_signs(state, face, found))
    return DriveJudgement(None, _combine_signs(state, face, found)) if found else _UNTOUCHED


def judge_by_rules(state: DriveState) -> RuleVerdict | None:
    """Return `DriveJudgement.verdict`."""
    return judge_drive(state).verdict


def judge_symptoms(state: DriveState) -> RuleVerdict | None:
    """Return the rules' verdict from the signs of a drive alone, or None without a sign."""
    if state.face is None:
        return None
    found = _collect_signs(state, state.face)
    return _combine_signs(state, state.face, found) if found else None


def _collect_signs(state: DriveState, face: Face) -> tuple[DefectSign, ...]:
    kind, counters = _find_kind(face), face.counters
    found = list[DefectSign]()
    if face.passed is False or face.failed_self_tests or state.io_errors:
        found += (sign for ask in _OF_EVERY_KIND for sign in ask(state, face))
    for ask in kind.first:
        found += ask(state, face)
    for rule in kind.rules:
        if getattr(counters, rule.counter):  # a drive seldom has any
            found += rule.find_signs(state, face)
    for ask in kind.last:
        found += ask(state, face)
    return sort_by_degree(found) if found else ()


def _is_forecast(face: Face) -> bool:
    if face.protocol is Protocol.SCSI:
        return bool(face.rotation_rpm) and any(
            getattr(face.counters, name) is not None for name in SAS_COUNTERS.values()
        )
    return face.protocol is Protocol.ATA and not is_ssd(face)


def is_ssd(face: Face) -> bool:
    """Return whether an ATA drive is an SSD. If the rotation is not reported, a model of a known maker is a hard
    disk."""
    if face.rotation_rpm is not None:
        return face.rotation_rpm == 0
    return "SSD" in face.model.upper() or maker_of(face.model) is None


def _own_verdict(_: DriveState, face: Face) -> Iterator[DefectSign]:
    # NVMe's verdict consists of the bits of its critical warning, which have signs of their own if they are
    # known.
    if face.passed is False and not face.counters.critical_warning:
        reason = Reason("verdict-failed", "The drive's own verdict is FAILED.")
        clears = "Clears when the drive takes its verdict back."
        yield DefectSign("verdict", CERTAIN, "device", reason, Advice.DRAIN_NOW, clears, hard=True)


Ask = Callable[[DriveState, Face], Iterator[DefectSign]]


@dataclass(frozen=True, slots=True)
class _SignFinders:
    """The signs that are looked for in one kind of drive after those of every kind, in their order."""

    first: tuple[Ask, ...]
    rules: tuple[CounterRule, ...]
    last: tuple[Ask, ...] = ()


_OF_EVERY_KIND: Final[tuple[Ask, ...]] = (_own_verdict, find_self_test_sign, find_io_error_signs)
_NVME: Final = _SignFinders((critical_warning, find_spare_sign, find_wear_sign), NVME)
_SAS: Final = _SignFinders((find_spare_sign, find_wear_sign), SAS)
_SSD: Final = _SignFinders((find_spare_sign, find_wear_sign), SSD, (find_cable_sign,))
_HARD_DISK: Final = _SignFinders((), HARD_DISK, (find_cable_sign,))


def _find_kind(face: Face) -> _SignFinders:
    if face.protocol is Protocol.NVME:
        return _NVME
    if face.protocol is Protocol.SCSI:
        return _SAS
    return _SSD if is_ssd(face) else _HARD_DISK


def _combine_signs(state: DriveState, face: Face, found: tuple[DefectSign, ...]) -> RuleVerdict:
    endurance = rated_life(state.changes.get("percentage_used", ()), state.day)
    if not found:
        return _judge_without_signs(face, endurance)
    first, score = found[0], score_of(found)
    status = status_of(score)
    reasons = (*(sign.reason for sign in found), *explain_transport_errors(state, face))
    if status is Status.GOOD:
        return RuleVerdict(first.rule, status, reasons, score, _mild_advice(found), endurance=endurance)
    advice = Advice.DRAIN_NOW if status is Status.BAD else _warning_advice(found)
    hard = any(sign.hard for sign in found)
    unread = any(sign.degree >= WARNING and not sign.forecast for sign in found)
    return RuleVerdict(first.rule, status, reasons, score, advice, first.clears, hard, unread, endurance)


def _warning_advice(found: tuple[DefectSign, ...]) -> Advice:
    """Return the advice of the strongest sign. With I/O errors, the drive's other signs or its cable come first."""
    others = [sign for sign in found if sign.rule != "io-errors"]
    own = next((sign.advice for sign in others if sign.degree >= WARNING), None)
    return own or next((sign.advice for sign in others if sign.cause == "cable"), found[0].advice)


def _mild_advice(found: tuple[DefectSign, ...]) -> Advice:
    """Return the advice for signs below a warning. For errors that rise it is never "nothing"."""
    noted = {sign.advice for sign in found if sign.noted or sign.degree >= NOTED}
    return Advice.CHECK_CABLE if Advice.CHECK_CABLE in noted else Advice.WATCH if noted else Advice.NOTHING


def _judge_unread_host(probe: Probe) -> RuleVerdict:
    """Return the verdict for a fault of the host: nothing is known of the disk, and there is no evidence against it."""
    told = f"Its host has read no disk since {probe.since:%d %b %H:%M}: {probe.why.rstrip('.')}."
    return RuleVerdict("no-reading", Status.UNKNOWN, (Reason("nothing-reported", told),), None, Advice.LOOK)


def _judge_unreadable_drive(probe: Probe) -> RuleVerdict:
    sentence = (
        f"No reading since {probe.since:%d %b %H:%M}, {probe.probes} probes failed: {probe.why.rstrip('.')}."
    )
    clears = "Clears with the next reading that succeeds."
    reason = Reason("unreadable", sentence)
    return RuleVerdict("unreadable", Status.BAD, (reason,), CERTAIN, Advice.LOOK, clears, hard=True)


def _judge_without_signs(face: Face, endurance: Life | None) -> RuleVerdict:
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
