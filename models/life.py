"""From a hazard of ninety days to a whole life: what sets a drive apart from its family fades with time.

Beyond 90 days the hazard is the family's rate at the age that the drive will have then, times the drive's relative
risk: at first its own hazard (days 30 to 90) over its family's; later the log of that ratio halves every so many days.
What exceeds the family's rate fades faster still, since of drives with one forecast the sick die first and the false
alarms are left. So flagged drives that survive live on for years, and quiet ones do not stay quiet. The curve goes on
from the chances at 7, 14, 30 and 90 days and never rises. Survival is given on `data.outlook.GRID_DAYS`; life
expectancy is read off that curve.
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
from predrain.models.family import AGES, YEAR, Rates, years
from predrain.models.hazard import EDGES

GRID: Final = np.array(GRID_DAYS, dtype=np.float64)
START: Final = (EDGES[-2] + EDGES[-1]) / 2
"""Day after the landmark on which a relative risk is a drive's own: the middle of the last interval."""
LATE: Final = GRID[EDGES[-1] < GRID]
PERIODS: Final = np.array([90, 135, 180, 270, 365, 545, 730, 1095, 1460, 2190, 3650], dtype=np.float64)
"""Days after the landmark within which deaths are told apart when fading is fitted."""
BOUNDS: Final = (-3.0, 7.0)
"""Least and largest log relative risk: from a twentieth to a thousand times the family's rate."""


@dataclass(frozen=True, slots=True)
class Fading:
    """How a drive's hazard falls back to its family's."""

    flagged: float
    """Days in which the log of a risk above the family's halves, once it is the drive's own."""
    quiet: float
    """Days in which that of a risk below it does."""
    spread: float
    """Variance of the excess hazards of drives that share a forecast, over its square: some are sick and some false
    alarms, and the sick die first (Gamma frailty: Vaupel, Manton and Stallard 1979)."""

    def log_risk(self, first: NDArray[np.float64], day: float | NDArray[np.float64]) -> NDArray[np.float64]:
        """Log relative risk so many days after the landmark; first: (drives,) what it was on day START."""
        left = 0.5 ** (np.maximum(day - START, 0.0) / np.where(first > 0, self.flagged, self.quiet))
        return np.asarray(first * left, dtype=np.float64)


TOGETHER: Final = 1_000
"""Drives whose curves are drawn at a time: all their late days stand in memory then."""
USUAL: Final = Fading(flagged=1000.0, quiet=140.0, spread=0.5)
"""What a history is drawn to that follows few drives."""
SURE: Final = 0.25
"""Standard deviation of the log of these."""
_TRIED: Final = tuple(float(times) for times in np.geomspace(1 / 8, 8, 37))
"""Multiples of them that are tried."""


@dataclass(frozen=True, slots=True)
class WatchedPeriods:
    """When landmarks' drives were watched: (landmarks,) days after the landmark; none where closes <= opens."""

    opens: NDArray[np.float64]
    closes: NDArray[np.float64]
    died: NDArray[np.bool_]
    """On the day on which the watch closes."""


def first_risk(died_by: NDArray[np.float64], rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """(drives,) log of the hazard in the last interval over the family's; rate: deaths per drive-year.

    died_by: (drives, 4) chance to have died by 7, 14, 30 and 90 days.
    """
    alive = np.maximum(1.0 - died_by[:, -2:], 1e-12)
    hazard = np.log(alive[:, 0] / alive[:, 1]) / (EDGES[-1] - EDGES[-2]) * YEAR
    return np.clip(np.log(np.maximum(hazard, 1e-12) / rate), *BOUNDS)


def fading_of(
    first: NDArray[np.float64],
    rate: NDArray[np.float64],
    weight: NDArray[np.float64],
    watches: Sequence[WatchedPeriods],
) -> Fading:
    """The most likely fading, drawn to USUAL.

    All (landmarks,): log relative risk, the family's deaths per drive-year, weight. The likelihood is conditional on
    how many die in each watch and period, and asks only who they are: a rate that drifts with the years cancels out
    (as in Cox 1972).
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
                # A death is repeated by each weekly landmark of the period before it; it shall count once.
                once = weight * 7.0 / (closes - opens)
                expected = np.bincount(place, weight * exposed * rate, size).astype(np.float64)
                cells.append(
                    (
                        float(np.sqrt(opens * closes)),
                        expected,
                        np.bincount(place, once * dead, size).astype(np.float64),
                    )
                )

    def likelihood(fading: Fading) -> float:
        total = -0.5 * sum(np.log(times) ** 2 for times in _times(fading)) / SURE**2
        excess = _accumulated(typical, lambda _: usual_rate, fading)[1][1:]
        for day, expected, died in cells:
            own = np.exp(fading.log_risk(typical, day))
            weeded = 1 + fading.spread * excess[int(np.searchsorted(LATE, day))]
            risk = np.minimum(own, 1) + np.maximum(own - 1, 0) / weeded
            total += float(died @ np.log(risk) - died.sum() * np.log(expected @ risk))
        return float(total)

    best = USUAL
    for _ in range(3):
        for name in Fading.__slots__:
            tried = (replace(best, **{name: getattr(USUAL, name) * times}) for times in _TRIED)
            best = max(tried, key=likelihood)
    return best


def _times(fading: Fading) -> list[float]:
    return [getattr(fading, name) / getattr(USUAL, name) for name in Fading.__slots__]


def _accumulated(
    first: NDArray[np.float64], rate_at: Callable[[NDArray[np.float64]], NDArray[np.float64]], fading: Fading
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """On the last edge and then on each day of LATE: the family's hazard summed since that edge, and the excess
    hazard summed since START, (1 + len(LATE), drives) each. rate_at: of (days, 1)."""
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
    """Each drive's rate so many days on. table: (drives, AGES); age: (drives,) hours."""
    rates: NDArray[np.float64] = table[np.arange(len(age)), years(age + 24.0 * days)]
    return rates


def survival(
    died_by: NDArray[np.float64],
    rates: Rates,
    fading: Fading,
    model: NDArray[np.object_],
    hours: NDArray[np.float32],
) -> NDArray[np.float64]:
    """(drives, len(GRID_DAYS)) survival, 1 on day 0 and never rising.

    died_by: (drives, 4) chance to have died by 7, 14, 30 and 90 days. A rate that is worth few deaths may be several
    times too high or too low: beyond 90 days the family's part is averaged over that Gamma, so that lives of models
    of which little is known spread wide.
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
    first = first_risk(died_by, table[at, years(age)])
    worth = np.array([rates.worth(str(name)) for name in names])[at] if len(names) else np.zeros(0)
    for begin in range(0, count, TOGETHER):
        some = slice(begin, begin + TOGETHER)
        family, excess = _accumulated(first[some], partial(_rate_at, table[at[some]], age[some]), fading)
        at_edge = excess[0]
        weeded = np.log1p(fading.spread * (excess - at_edge) / (1 + fading.spread * at_edge)) / fading.spread
        known = np.isfinite(worth[some])
        shape = np.where(known, worth[some], 1.0)
        family = np.where(known, shape * np.log1p(family / shape), family)
        cumulative[some, ~early] = (near[some, -1] + family + weeded)[1:].T
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
