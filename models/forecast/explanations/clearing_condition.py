"""The condition under which a flag clears, found by a new forecast of the drive after quieter days.

After such days nothing has risen, the drive has worked on as before, and pending sectors may be rewritten.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from predrain.features.feature_schema import LONG_AGO, NAMES_IN_ORDER, POSITION
from predrain.models.forecast.explanations.facts import Matrix, format_probability

if TYPE_CHECKING:
    from predrain.models.forecast.bundle import Bundle


_STILL: Final = re.compile(r"smart_\d+_(up_\d+d|rises_30d|net_30d)|rising_\d+d|sectors_up_7d")
_SINCE: Final = re.compile(r"smart_\d+_since_(rise|first)|since_any_(rise|first)")
STILL: Final = [i for i, name in enumerate(NAMES_IN_ORDER) if _STILL.fullmatch(name)]
SINCE: Final = [i for i, name in enumerate(NAMES_IN_ORDER) if _SINCE.fullmatch(name)]


def simulate_quiet_days(x: NDArray[np.float32], days: int, *, rewritten: bool = False) -> NDArray[np.float32]:
    """Return the vectors after `days` (30 or more) without a rise: (drives, features).

    rewritten: no pending sector is left either.
    """
    later = x.copy()
    later[:, STILL] = np.where(np.isnan(x[:, STILL]), np.nan, 0.0)
    later[:, SINCE] = np.minimum(x[:, SINCE] + days, LONG_AGO)
    later[:, POSITION["hours"]] += 24.0 * days
    if rewritten:
        pending, offline = (
            np.nan_to_num(x[:, POSITION["smart_197"]]),
            np.nan_to_num(x[:, POSITION["smart_198"]]),
        )
        later[:, POSITION["symptoms"]] -= (pending > 0).astype(np.float32) + (offline > 0).astype(np.float32)
        later[:, POSITION["pending_fallen"]] += pending
        for name in ("smart_197", "smart_198"):
            level = x[:, POSITION[name]]
            later[:, POSITION[name]] = np.where(np.isnan(level), np.nan, 0.0)
            if days <= 30:  # the fall lies within the last 30 days
                later[:, POSITION[f"{name}_net_30d"]] = -level
    return later


QUIET: Final = (30, 90)
"""Days without a rise after which the forecast is computed again."""
SURELY: Final = 0.75
"""Share of the warning threshold below which a flag "clears", not "may clear".

Below it, work and heat, which go on changing, seldom lift a quiet drive over the threshold again. Of 18 real drives
promised to clear at the threshold itself, 8 had not a month later; of 4 at this share, 1.
"""


def explain_clearing(
    bundle: Bundle, x: Matrix, model: NDArray[np.object_], symptom: NDArray[np.bool_]
) -> list[str]:
    """Return a sentence for each flagged drive. x: (drives, features). symptom: (drives,) whether any fact holds."""
    limit = bundle.facts.thresholds.warning
    pending = np.nan_to_num(x[:, POSITION["smart_197"]])
    said = [f"Clears when its forecast falls below {format_probability(limit)}."] * len(x)
    left, near = symptom.copy(), np.zeros(len(x), dtype=bool)
    p = np.zeros(len(x))
    for days in QUIET:
        for rewritten in (False, True):
            asked = np.flatnonzero(left & (pending > 0) if rewritten else left)
            if not len(asked):
                continue
            later = simulate_quiet_days(x[asked], days, rewritten=rewritten)
            p[asked] = bundle.predict_failure_probabilities(
                later, model[asked], np.ones(len(asked), dtype=bool)
            )[:, 2]
            for place in asked[p[asked] < limit]:
                left[place] = p[place] >= SURELY * limit
                if not (left[place] and near[place]):
                    verb = "May clear" if left[place] else "Clears"
                    said[place] = (
                        f"{verb} when nothing rises for {days} "
                        f"days{_describe_rewritten(rewritten, float(pending[place]))}."
                    )
                near[place] = True
    for place in np.flatnonzero(left & ~near):
        rest = " and rewritten sectors" if pending[place] > 0 else ""
        said[place] = (
            f"Does not clear soon: after {QUIET[-1]} quiet days{rest} its chance would still be "
            f"{format_probability(float(p[place]))} within 30 days."
        )
    return said


def _describe_rewritten(rewritten: bool, pending: float) -> str:
    if not rewritten:
        return ""
    return (
        f" and the {pending:,.0f} pending sectors are rewritten"
        if pending > 1
        else (" and the pending sector is rewritten")
    )
