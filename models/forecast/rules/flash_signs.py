"""Signs from flash drives: NVMe's critical warning bit by bit, spare blocks, wear and its slope.

These signs avoid three traps. The critical warning is mostly wear or heat. Normalised wear attributes are
unreliable, so wear is read only from device statistics and health logs. A spare threshold of 100 with spare 100 is
no alarm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from predrain.data.outlook import Advice, Reason
from predrain.features.drive_state import DriveState, Face
from predrain.models.forecast.rules.endurance import USED_UP, percent_a_day, rated_life
from predrain.models.forecast.rules.fuzzy_evidence import DefectSign
from predrain.models.forecast.rules.latest_rises import format_short_date
from predrain.models.forecast.rules.membership_functions import RAMPS

SPARE_BIT, HOT_BIT, READ_ONLY_BIT = 0x01, 0x02, 0x08
READ_ONLY, UNRELIABLE, BELOW_SPARE, WORN_WARNING, HOT = 1.0, 0.95, 0.9, 0.6, 0.4
"""Degrees of the states that a drive reports itself."""
WEAR_STAYS: Final = "Does not clear: wear does not go back."


def critical_warning(_: DriveState, face: Face) -> Iterator[DefectSign]:
    """Yield signs for NVMe's critical warning: spare, reliability, backup and PMR, separate from heat and from wear."""
    bits = face.counters.critical_warning or 0
    worn = (face.counters.percentage_used or 0) >= USED_UP
    rest = bits & ~HOT_BIT
    if bits & READ_ONLY_BIT:
        yield _build_outright_sign(
            "nvme-critical",
            READ_ONLY,
            "device",
            "nvme-read-only",
            "The drive has gone read-only (critical warning bit 3).",
        )
    elif rest and worn:
        yield DefectSign(
            "nvme-worn",
            WORN_WARNING,
            "wear",
            Reason(
                "verdict-worn",
                f"Its critical warning (0x{bits:02x}) comes with wear, not errors.",
                "critical_warning",
            ),
            Advice.SWAP_WORN,
            WEAR_STAYS,
        )
    elif rest:
        yield _build_outright_sign(
            "nvme-critical",
            UNRELIABLE,
            "spare" if rest == SPARE_BIT else "device",
            "nvme-unreliable",
            f"The drive warns that it is unreliable (critical warning 0x{bits:02x}).",
        )
    if bits & HOT_BIT:
        heat = "not reported" if face.temperature_c is None else f"{face.temperature_c} degrees Celsius"
        yield DefectSign(
            "nvme-hot",
            HOT,
            "heat",
            Reason("nvme-hot", f"It is too hot or too cold for itself: {heat}.", "critical_warning"),
            Advice.COOL,
            "Clears when the drive no longer warns of its temperature.",
        )


def _build_outright_sign(rule: str, degree: float, cause: str, code: str, sentence: str) -> DefectSign:
    clears = "Clears when the drive takes its warning back."
    return DefectSign(
        rule, degree, cause, Reason(code, sentence, "critical_warning"), Advice.DRAIN_NOW, clears, hard=True
    )


def find_spare_sign(_: DriveState, face: Face) -> Iterator[DefectSign]:
    """Yield a sign for spare blocks below their threshold, or on the way to it."""
    left, limit = face.counters.available_spare_pct, face.spare_threshold_pct
    if left is None or limit is None:
        return
    below = left < limit
    degree = (
        BELOW_SPARE if below else 0.0 if limit >= 100 else RAMPS["spare-left"]((left - limit) / (100 - limit))
    )
    if degree > 0:
        where = f"below its threshold {limit} %" if below else f"on its way to its threshold {limit} %"
        yield DefectSign(
            "spare",
            degree,
            "spare",
            Reason("spare-low", f"Spare {left} %, {where}.", "available_spare_pct"),
            Advice.DRAIN_NOW if below else Advice.REPLACE_SOON,
            "Does not clear: spare blocks do not come back.",
            hard=below,
        )


def find_wear_sign(state: DriveState, face: Face) -> Iterator[DefectSign]:
    """Yield a sign for a rated life that is used up, or soon will be by its slope."""
    used, changes = face.counters.percentage_used, state.changes.get("percentage_used", ())
    if used is None:
        return
    life = rated_life(changes, state.day)
    ending = 0.0 if life is None or life.p50_days is None else RAMPS["rated-life"](life.p50_days)
    degree = max(RAMPS["wear"](used), ending)
    if degree == 0:
        return
    told = f"{used} % of its rated life is used, by its own statistics"
    if life is not None and life.p50_days is not None:
        ends = format_short_date(state.day + round(life.p50_days))
        sentence = f"{told}, {percent_a_day(changes, state.day):.2f} % a day: it ends about {ends}."
    else:
        sentence = f"{told}." if used >= USED_UP else f"{told}; how fast it goes is not known yet."
    code = "worn-out" if used >= USED_UP else "wearing-out"
    yield DefectSign(
        "wear", degree, "wear", Reason(code, sentence, "percentage_used"), Advice.SWAP_WORN, WEAR_STAYS
    )
