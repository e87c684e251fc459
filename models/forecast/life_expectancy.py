"""From a hazard of ninety days to a whole life: the difference between a drive and its family fades with time.

Beyond 90 days the hazard is the family's rate at the age that the drive will have then, times the drive's relative
risk. At first that risk is its own hazard (days 30 to 90) divided by its family's; later the log of that ratio
halves every so many days. The part above the family's rate fades faster still: among drives with one forecast the
sick die first and the false alarms remain. So flagged drives that survive live on for years, and quiet drives do
not stay quiet.

The curve continues from the probabilities at 7, 14, 30 and 90 days and never rises. Survival is given on
`data.outlook.GRID_DAYS`, and life expectancy is read from that curve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.outlook import GRID_DAYS
from predrain.models.forecast.drive_family import AGES, YEAR, DeathRates, compute_age_years
from predrain.models.forecast.hazard import EDGES

GRID: Final = np.array(GRID_DAYS, dtype=np.float64)
START: Final = (EDGES[-2] + EDGES[-1]) / 2
"""Day after the landmark to which a drive's own relative risk belongs: the middle of the last interval."""
LATE: Final = GRID[EDGES[-1] < GRID]
PERIODS: Final = np.array([90, 135, 180, 270, 365, 545, 730, 1095, 1460, 2190, 3650], dtype=np.float64)
"""Days after the landmark that separate the periods of death when the fading is fitted."""
BOUNDS: Final = (-3.0, 7.0)
"""Least and largest log relative risk: from a twentieth to a thousand times the family's rate."""


@dataclass(frozen=True, slots=True)
class HazardFading:
    """The speed at which a drive's hazard returns to its family's."""

    flagged: float
    """Days in which the log of a risk above the family's halves, after day START."""
    quiet: float
    """Days in which the log of a risk below the family's halves."""
    spread: float
    """Variance of the excess hazards of drives that share a forecast, divided by the square of their mean.

    Some of these drives are sick and some are false alarms, and the sick die first (Gamma frailty: Vaupel, Manton
    and Stallard 1979).
    """

    def log_risk(self, first: NDArray[np.float64], day: float | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log relative risk so many days after the landmark. first: (drives,) the risk on day START."""
        left = 0.5 ** (np.maximum(day - START, 0.0) / np.where(first > 0, self.flagged, self.quiet))
        return np.asarray(first * left, dtype=np.float64)


TOGETHER: Final = 1_000
"""Number of drives whose curves are computed at a time, because all their late days are in memory then."""
USUAL: Final = HazardFading(flagged=1000.0, quiet=140.0, spread=0.5)
"""The fading to which every fit is drawn; a history that follows few drives gets nearly this one."""
SURE: Final = 0.25
"""Standard deviation of the log of each number of a fading around that of USUAL."""
_TRIED: Final = tuple(float(times) for times in np.geomspace(1 / 8, 8, 37))
"""Multiples of the numbers of USUAL that a fit tries."""


@dataclass(frozen=True, slots=True)
class WatchedPeriods:
    """The days after the landmark on which each landmark's drive was watched: (landmarks,); none where closes <=
    opens."""

    opens: NDArray[np.float64]
    closes: NDArray[np.float64]
    died: NDArray[np.bool_]
    """True if the drive died on the day on which the watch closes."""


def first_risk(died_by: NDArray[np.float64], rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of the hazard in the last interval relative to the family's: (drives,).

    died_by: (drives, 4) probability of death by 7, 14, 30 and 90 days. rate: deaths per drive-year.
    """
    alive = np.maximum(1.0 - died_by[:, -2:], 1e-12)
    hazard = np.log(alive[:, 0] / alive[:, 1]) / (EDGES[-1] - EDGES[-2]) * YEAR
    return np.clip(np.log(np.maximum(hazard, 1e-12) / rate), *BOUNDS)


def fading_of(
    first: NDArray[np.float64],
    rate: NDArray[np.float64],
    weight: NDArray[np.float64],
    watches: Sequence[WatchedPeriods],
) -> HazardFading:
    """Find the most likely fading, drawn to USUAL.

    All (landmarks,): log relative risk, the family's deaths per drive-year, weight. The likelihood is conditional
    on the number of deaths in each watch and period, and depends only on which drives they are. So a rate that
    drifts with the years cancels out (as in Cox 1972).
    """
    edges = np.arange(BOUNDS[0], BOUNDS[1] + 0.1, 0.1)
    place = np.digitize(first, edges)
    size = len(edges) + 1
    summed = np.bincount(place, weight, size)
    typical, usual_rate = (
        np.bincount(place, weight * each, size) / np.maximum(summed, 1e-300) for each in (first, rate)
    )
    cells: list[tuple[float, NDArray[np.float64], NDArray[np.float64]]] = []
    for watch in watches:
        for opens, closes in pairwise(PERIODS.tolist()):
            seen = np.minimum(watch.closes, closes) - np.maximum(watch.opens, opens)
            exposed = np.maximum(seen, 0.0)
            dead = watch.died & (seen > 0) & (watch.closes <= closes)
            if dead.any():
                # Each weekly landmark in the period before a death repeats that death, and it must count
                # once.
                once = weight * 7.0 / (closes - opens)
                expected = np.bincount(place, weight * exposed * rate, size).astype(np.float64)
                cells.append(
                    (
                        float(np.sqrt(opens * closes)),
                        expected,
                        np.bincount(place, once * dead, size).astype(np.float64),
                    )
                )

    def likelihood(fading: HazardFading) -> float:
        total = -0.5 * sum(np.log(times) ** 2 for times in _compute_usual_ratios(fading)) / SURE**2
        excess = _accumulate_hazards(typical, lambda _: usual_rate, fading)[1][1:]
        for day, expected, died in cells:
            own = np.exp(fading.log_risk(typical, day))
            weeded = 1 + fading.spread * excess[int(np.searchsorted(LATE, day))]
            risk = np.minimum(own, 1) + np.maximum(own - 1, 0) / weeded
            total += float(died @ np.log(risk) - died.sum() * np.log(expected @ risk))
        return float(total)

    best = USUAL
    for _ in range(3):
        for name in HazardFading.__slots__:
            tried = (replace(best, **{name: getattr(USUAL, name) * times}) for times in _TRIED)
            best = max(tried, key=likelihood)
    return best


def _compute_usual_ratios(fading: HazardFading) -> list[float]:
    return [getattr(fading, name) / getattr(USUAL, name) for name in HazardFading.__slots__]


def _accumulate_hazards(
    first: NDArray[np.float64],
    rate_at: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    fading: HazardFading,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum hazards on the last edge and on each day of LATE: (1 + len(LATE), drives) each.

    The family's hazard is summed since the last edge, and the excess hazard since START. rate_at: a function of
    (days, 1).
    """
    days = np.append(float(EDGES[-1]), LATE)[:, None]
    middle, length = (days[:-1] + days[1:]) / 2, np.diff(days, axis=0)
    own = np.exp(fading.log_risk(first, middle))
    rate = rate_at(middle) / YEAR * length
    soon = rate_at(np.array([[START]])) / YEAR * np.maximum(np.exp(first) - 1, 0) * (EDGES[-1] - START)
    at_edge = np.atleast_2d(soon)
    family = np.cumsum(np.concatenate([np.zeros_like(at_edge), rate * np.minimum(own, 1)]), axis=0)
    excess = np.cumsum(np.concatenate([at_edge, rate * np.maximum(own - 1, 0)]), axis=0)
    return family, excess


def _rate_at(
    table: NDArray[np.float64], age: NDArray[np.float64], days: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return each drive's rate so many days later. table: (drives, AGES). age: (drives,) hours."""
    rates: NDArray[np.float64] = table[np.arange(len(age)), compute_age_years(age + 24.0 * days)]
    return rates


def compute_survival_curves(
    died_by: NDArray[np.float64],
    rates: DeathRates,
    fading: HazardFading,
    model: NDArray[np.object_],
    hours: NDArray[np.float32],
) -> NDArray[np.float64]:
    """Compute survival: (drives, len(GRID_DAYS)), 1 on day 0 and never rising.

    died_by: (drives, 4) probability of death by 7, 14, 30 and 90 days. A rate that is worth few deaths may be
    several times too high or too low. So beyond 90 days the family's part is averaged over that Gamma, and lives of
    models with little data spread widely.
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
    table = np.array([rates.by_age(str(name)) for name in names]).reshape(len(names), AGES)
    age = np.nan_to_num(np.asarray(hours, dtype=np.float64), nan=2.5 * 24 * YEAR)
    first = first_risk(died_by, table[at, compute_age_years(age)])
    worth = (
        np.array([rates.count_evidence_deaths(str(name)) for name in names])[at]
        if len(names)
        else np.zeros(0)
    )
    for begin in range(0, count, TOGETHER):
        some = slice(begin, begin + TOGETHER)
        family, excess = _accumulate_hazards(
            first[some], partial(_rate_at, table[at[some]], age[some]), fading
        )
        at_edge = excess[0]
        weeded = np.log1p(fading.spread * (excess - at_edge) / (1 + fading.spread * at_edge)) / fading.spread
        known = np.isfinite(worth[some])
        shape = np.where(known, worth[some], 1.0)
        family = np.where(known, shape * np.log1p(family / shape), family)
        cumulative[some, ~early] = (near[some, -1] + family + weeded)[1:].T
    curve: NDArray[np.float64] = np.exp(-cumulative)
    return curve


def compute_life_quantiles(curve: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return days until 10, 50 and 90 % have died: (drives, 3), NaN beyond the grid. Log survival is linear between
    days."""
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
