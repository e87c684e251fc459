"""Rules, for what no model was trained on: vendor verdicts, NVMe, SATA SSD, SAS, and drives that cannot be read.

A rule gives a status and sentences but no probability. Limits and their false-alarm rates:
docs/explanation/forecast.md. Traps they step around: critical_warning is mostly wear or heat; normalised wear ids and
NVMe error-log entries mean nothing; a spare threshold of 100 with spare 100 is no alarm; 4294967295 media errors are
no count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from data.history import EPOCH
from data.outlook import Reason, Status
from data.reading import Protocol
from features.state import DriveState, Face
from models.family import maker_of

CODES: Final = (
    "unreadable",
    "verdict-failed",
    "verdict-worn",
    "nvme-read-only",
    "nvme-unreliable",
    "nvme-hot",
    "spare-low",
    "worn-out",
    "media-errors",
    "media-errors-rose",
    "uncorrectable-rose",
    "reallocated-rose",
    "grown-defects-rose",
    "uncorrected-errors-rose",
    "no-sign",
    "nothing-reported",
)
HOT_BIT, SPARE_BIT, RELIABILITY_BIT, READ_ONLY_BIT = 0x02, 0x01, 0x04, 0x08
SATURATED: Final = 2**32 - 1
UNREADABLE_PROBES: Final = 2
"""Failed probes in a row from which a drive counts as unreadable; the first may be a hiccup."""

DRAIN, SOON = "Drain it now and replace the disk.", "Plan to replace it soon; watch that nothing more rises."
SWAP = "Plan the swap of a worn drive; wear alone marked 4 % of failed SSDs."
OPEN = "Look whether the device, its cable and its host are there; if it stays away, replace it."


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule says."""

    rule: str
    status: Status
    reasons: tuple[Reason, ...]
    prescription: str
    hard: bool = False


def judge(state: DriveState) -> Verdict | None:
    """The rules' verdict, or None for a readable hard disk on SATA, which the model judges."""
    if state.unreadable is not None and state.unreadable.probes >= UNREADABLE_PROBES:
        return _unreadable(state)
    face = state.face
    if face is None:
        return Verdict(
            "no-reading", Status.UNKNOWN, (Reason("nothing-reported", "It has not been read yet."),), OPEN
        )
    if face.protocol is Protocol.NVME:
        return _worst(face, (_nvme_bits, _spare, _wear, _media), state) or _quiet(face)
    if face.passed is False:
        return Verdict(
            "verdict",
            Status.BAD,
            (Reason("verdict-failed", "The drive's own verdict is FAILED."),),
            DRAIN,
            hard=True,
        )
    if face.protocol is Protocol.SCSI:
        return _worst(face, (_uncorrected, _defects, _wear), state) or _quiet(face)
    if is_ssd(face):
        return _worst(face, (_ssd_errors, _spare, _wear), state) or _quiet(face)
    return None


def is_ssd(face: Face) -> bool:
    """Whether an ATA drive has no platters; where rotation is not told, a known hard-disk maker's model has."""
    if face.rotation_rpm is not None:
        return face.rotation_rpm == 0
    return "SSD" in face.model.upper() or maker_of(face.model) is None


Rule = Callable[[DriveState, Face], Verdict | None]
_ORDER: Final = {Status.BAD: 2, Status.WARNING: 1}


def _worst(face: Face, rules: tuple[Rule, ...], state: DriveState) -> Verdict | None:
    """The worst verdict, with the reasons of all."""
    said = [verdict for rule in rules if (verdict := rule(state, face)) is not None]
    if not said:
        return None
    first = max(said, key=lambda verdict: _ORDER[verdict.status])
    others = tuple(reason for verdict in said if verdict is not first for reason in verdict.reasons)
    return Verdict(first.rule, first.status, (*first.reasons, *others), first.prescription, first.hard)


def _unreadable(state: DriveState) -> Verdict:
    assert state.unreadable is not None
    probe = state.unreadable
    sentence = (
        f"No reading since {probe.since:%d %b %H:%M}, {probe.probes} probes failed: {probe.why.rstrip('.')}."
    )
    return Verdict("unreadable", Status.BAD, (Reason("unreadable", sentence),), OPEN, hard=True)


def _nvme_bits(_: DriveState, face: Face) -> Verdict | None:
    bits = face.counters.critical_warning or 0
    worn = (face.counters.percentage_used or 0) >= 100
    if bits & READ_ONLY_BIT:
        why = Reason(
            "nvme-read-only", "The drive has gone read-only (critical warning bit 3).", "critical_warning"
        )
        return Verdict("nvme-critical", Status.BAD, (why,), DRAIN, hard=True)
    rest = bits & ~HOT_BIT
    if rest and worn:
        why = Reason(
            "verdict-worn",
            f"Its critical warning (0x{bits:02x}) comes with wear, not errors.",
            "critical_warning",
        )
        return Verdict("nvme-worn", Status.WARNING, (why,), SWAP)
    if rest:
        why = Reason(
            "nvme-unreliable",
            f"The drive warns that it is unreliable (critical warning 0x{bits:02x}).",
            "critical_warning",
        )
        return Verdict("nvme-critical", Status.BAD, (why,), DRAIN, hard=True)
    if bits & HOT_BIT:
        heat = "not reported" if face.temperature_c is None else f"{face.temperature_c} degrees Celsius"
        why = Reason("nvme-hot", f"It is too hot or too cold for itself: {heat}.", "critical_warning")
        return Verdict(
            "nvme-hot", Status.WARNING, (why,), "Look to its cooling; the disk itself says nothing worse."
        )
    return None


def _spare(_: DriveState, face: Face) -> Verdict | None:
    spare, limit = face.counters.available_spare_pct, face.spare_threshold_pct
    if spare is None or limit is None or spare >= limit:
        return None
    why = Reason("spare-low", f"Spare {spare} %, below its threshold {limit} %.", "available_spare_pct")
    return Verdict("spare", Status.BAD, (why,), DRAIN, hard=True)


def _wear(_: DriveState, face: Face) -> Verdict | None:
    used = face.counters.percentage_used
    if used is None or used < 100:
        return None
    why = Reason("worn-out", f"{used} % of its rated life is used, by its own statistics.", "percentage_used")
    return Verdict("wear", Status.WARNING, (why,), SWAP)


def _media(state: DriveState, face: Face) -> Verdict | None:
    errors = face.counters.media_errors
    if not errors or errors >= SATURATED:
        return None
    rise = _rise(state, "media_errors", 7)
    if rise is not None:
        why = Reason("media-errors-rose", f"Media errors {rise}.", "media_errors")
        return Verdict("media-errors", Status.BAD, (why,), DRAIN, hard=True)
    why = Reason("media-errors", f"{errors:,} media errors, none new in 7 days.", "media_errors")
    return Verdict("media-errors", Status.WARNING, (why,), SOON) if errors >= 10 else None


def _ssd_errors(state: DriveState, _: Face) -> Verdict | None:
    for counter, code, what in (
        ("reported_uncorrectable", "uncorrectable-rose", "Uncorrectable errors"),
        ("media_errors", "media-errors-rose", "Media errors"),
    ):
        rise = _rise(state, counter, 7)
        if rise is not None:
            return Verdict(
                "ssd-errors", Status.BAD, (Reason(code, f"{what} {rise}.", counter),), DRAIN, hard=True
            )
    rise = _rise(state, "reallocated", 7)
    if rise is None:
        return None
    why = Reason(
        "reallocated-rose",
        f"Reallocated sectors {rise}. In one model 38 % of failing drives had any two days before, 89 % one.",
        "reallocated",
    )
    return Verdict("ssd-reallocated", Status.WARNING, (why,), SOON)


def _uncorrected(state: DriveState, _: Face) -> Verdict | None:
    rise = _rise(state, "uncorrected_errors", 14)
    if rise is None:
        return None
    why = Reason("uncorrected-errors-rose", f"Uncorrected errors {rise}.", "uncorrected_errors")
    return Verdict("sas-uncorrected", Status.BAD, (why,), DRAIN, hard=True)


def _defects(state: DriveState, _: Face) -> Verdict | None:
    rise = _rise(state, "grown_defects", 14)
    if rise is None:
        return None
    why = Reason("grown-defects-rose", f"Grown defects {rise}.", "grown_defects")
    grew = _grown(state.changes, "grown_defects", state.day - 14)
    status = Status.BAD if grew is not None and grew[1] - grew[0] >= 10 else Status.WARNING
    return Verdict("sas-defects", status, (why,), DRAIN if status is Status.BAD else SOON)


def _quiet(face: Face) -> Verdict:
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
        return Verdict(
            "nothing-reported", Status.UNKNOWN, (why,), "Nothing can be said of it; treat it as unknown."
        )
    why = Reason("no-sign", "No warning sign; there is no failure model for this kind of drive, only rules.")
    return Verdict("no-sign", Status.GOOD, (why,), "Nothing to do.")


def _grown(
    changes: Mapping[str, tuple[tuple[int, int], ...]], counter: str, since: int
) -> tuple[int, int] | None:
    """Value that held on day `since` (or when first seen) and value now, when it has risen."""
    known = changes.get(counter, ())
    if not known:
        return None
    start = next((value for day, value in reversed(known) if day <= since), known[0][1])
    return (start, known[-1][1]) if known[-1][1] > start else None


def _rise(state: DriveState, counter: str, window: int) -> str | None:
    """ "0 to 12 since 16 Nov" when the counter rose in the last `window` days."""
    grew = _grown(state.changes, counter, state.day - window)
    if grew is None or grew[1] >= SATURATED:
        return None
    first = next(day for day, value in state.changes[counter] if day > state.day - window and value > grew[0])
    return f"{grew[0]:,} to {grew[1]:,} since {EPOCH + timedelta(days=first):%d %b}"
