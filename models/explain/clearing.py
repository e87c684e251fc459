"""What would clear a flag: the drive is forecast anew after quieter days, instead of being promised anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from predrain.features.schema import POSITION
from predrain.models.explain.facts import Matrix, percent
from predrain.models.explain.quiet import quiet

if TYPE_CHECKING:
    from predrain.models.bundle import Bundle

QUIET: Final = (30, 90)
"""Days without a rise after which a flag is tried to be cleared."""
SURELY: Final = 0.75
"""Of the warning's chance: below this work and heat, which go on changing, seldom lift a quiet drive over it again.
Of 18 real drives promised to clear at the warning itself, 8 had not a month later; of 4 at this share 1."""


def clearing(bundle: Bundle, x: Matrix, model: NDArray[np.object_], symptom: NDArray[np.bool_]) -> list[str]:
    """A sentence for each flagged drive. x: (drives, features); symptom: (drives,) whether any fact holds."""
    limit = bundle.facts.thresholds.warning
    pending = np.nan_to_num(x[:, POSITION["smart_197"]])
    said = [f"Clears when its forecast falls below {percent(limit)}."] * len(x)
    left, near = symptom.copy(), np.zeros(len(x), dtype=bool)
    p = np.zeros(len(x))
    for days in QUIET:
        for rewritten in (False, True):
            asked = np.flatnonzero(left & (pending > 0) if rewritten else left)
            if not len(asked):
                continue
            later = quiet(x[asked], days, rewritten=rewritten)
            p[asked] = bundle.chances(later, model[asked], np.ones(len(asked), dtype=bool))[:, 2]
            for place in asked[p[asked] < limit]:
                left[place] = p[place] >= SURELY * limit
                if not (left[place] and near[place]):
                    verb = "May clear" if left[place] else "Clears"
                    said[place] = (
                        f"{verb} when nothing rises for {days} days{_also(rewritten, float(pending[place]))}."
                    )
                near[place] = True
    for place in np.flatnonzero(left & ~near):
        rest = " and rewritten sectors" if pending[place] > 0 else ""
        said[place] = (
            f"Does not clear soon: after {QUIET[-1]} quiet days{rest} its chance would still be "
            f"{percent(float(p[place]))} within 30 days."
        )
    return said


def _also(rewritten: bool, pending: float) -> str:
    if not rewritten:
        return ""
    return (
        f" and the {pending:,.0f} pending sectors are rewritten"
        if pending > 1
        else (" and the pending sector is rewritten")
    )
