"""From a hazard of ninety days to a whole life: beyond them a drive falls back to its family, at the speed seen.

Flagged drives that survive live on for years, so the hazard must fall again. Beyond 90 days it is the family's rate
at the drive's age then, times the relative risk which drives with such a forecast were seen to have 90-365 days, 1-3
years and later after it. Survival is given on `data.outlook.GRID_DAYS`; life expectancy is read off that curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from data.outlook import GRID_DAYS
from models.family import AGES, YEAR, Rates, years
from models.hazard import EDGES

GRID: Final = np.array(GRID_DAYS, dtype=np.float64)
BINS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
"""Bounds of p_fail_30d between which drives share a relative risk."""
PERIODS: Final = (90, 365, 1095, 3650)
"""Days after the landmark between which a relative risk holds."""


@dataclass(frozen=True, slots=True)
class Fading:
    """Relative risk against the family, by bin of p_fail_30d and period: (len(BINS) + 1, 3)."""

    risk: tuple[tuple[float, ...], ...]


def fading_of(
    p_30d: NDArray[np.float64],
    rate: NDArray[np.float64],
    follow: NDArray[np.int64],
    died: NDArray[np.bool_],
    weight: NDArray[np.float64],
) -> Fading:
    """Observed over expected deaths after day 90, drawn to 1 as if one expected death had been seen.

    All (landmarks,): forecast, the family's deaths per drive-year, days followed, death at the end of them, weight.
    """
    which = np.digitize(p_30d, BINS)
    table = np.ones((len(BINS) + 1, len(PERIODS) - 1))
    for period in range(len(PERIODS) - 1):
        opens, closes = PERIODS[period], PERIODS[period + 1]
        exposed = np.clip(follow - opens, 0, closes - opens)
        dead = died & (follow > opens) & (follow <= closes)
        expected = np.bincount(which, weight * exposed * rate / YEAR, minlength=len(BINS) + 1)
        seen = np.bincount(which, weight * dead, minlength=len(BINS) + 1)
        # Weekly landmarks repeat a death some dozen times: the prior must weigh as much as one whole drive.
        table[:, period] = (seen + 50.0) / (expected + 50.0)
        if period and not dead.any():
            # Nobody was followed so long: what is left of a difference goes on fading at the pace seen.
            table[:, period] = np.sqrt(table[:, period - 1])
    return Fading(tuple(tuple(float(v) for v in row) for row in table))


def survival(
    died_by: NDArray[np.float64],
    rates: Rates,
    fading: Fading,
    model: NDArray[np.object_],
    hours: NDArray[np.float32],
) -> NDArray[np.float64]:
    """(drives, len(GRID_DAYS)) survival, 1 on day 0 and never rising.

    died_by: (drives, 4) chance to have died by 7, 14, 30 and 90 days.
    """
    count = len(died_by)
    cumulative = np.zeros((count, len(GRID)))
    near = -np.log1p(-np.minimum(np.column_stack([np.zeros(count), died_by]), 1 - 1e-12))
    early = EDGES[-1] >= GRID
    place = np.searchsorted(EDGES, GRID[early], side="left").clip(1)
    low, high = np.array(EDGES)[place - 1], np.array(EDGES)[place]
    share = (GRID[early] - low) / (high - low)
    cumulative[:, early] = near[:, place - 1] * (1 - share) + near[:, place] * share
    names, at = np.unique(model.astype(str), return_inverse=True)
    table = np.array([rates.by_age(str(name)) for name in names]).reshape(len(names), AGES) / YEAR
    age = np.nan_to_num(np.asarray(hours, dtype=np.float64), nan=2.5 * 24 * YEAR)
    risk = np.array(fading.risk)[np.digitize(died_by[:, 2], BINS)]
    total, before = near[:, -1].copy(), float(EDGES[-1])
    for column in np.flatnonzero(~early):
        middle = (before + GRID[column]) / 2
        period = min(int(np.searchsorted(PERIODS, middle, side="right")) - 1, len(PERIODS) - 2)
        rate = table[at, years(age + 24.0 * middle)] * risk[:, period]
        total += rate * (GRID[column] - before)
        cumulative[:, column] = total
        before = GRID[column]
    curve: NDArray[np.float64] = np.exp(-cumulative)
    return curve


def quantiles(curve: NDArray[np.float64]) -> NDArray[np.float64]:
    """(drives, 3) days until 10, 50 and 90 % have died; NaN beyond the grid. Linear in log survival between days."""
    out = np.full((len(curve), 3), np.nan)
    fallen = -np.log(np.maximum(curve, 1e-300))
    for column, share in enumerate((0.1, 0.5, 0.9)):
        target = -np.log(1 - share)
        reached = fallen >= target
        there = reached.any(axis=1)
        at = np.maximum(reached.argmax(axis=1), 1)
        row = np.arange(len(curve))
        low, high = fallen[row, at - 1], fallen[row, at]
        part = np.clip((target - low) / np.maximum(high - low, 1e-300), 0, 1)
        out[there, column] = (GRID[at - 1] + part * (GRID[at] - GRID[at - 1]))[there]
    return out
