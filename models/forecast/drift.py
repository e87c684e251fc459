"""Drift: a test whether a family's drives still look as those in the training did, and get the same scores.

A bundle keeps a small sketch of each feature and of the score, by family, in `reference.json`. Two tests must agree
before a family is called drifted. One is the population stability index (Siddiqi 2006: 0.1 to 0.25 some, above 0.25
much). The other is the two-sample Kolmogorov-Smirnov test at a level shared among all features.

Work and temperature change from week to week in every fleet, for all drives together. So the sketch records how far
single stretches of the training differed from the whole, and a feature must differ more. A stretch is a week, or
the number of weeks that hold 100 landmarks. The score also follows age, in steps, so for a drift its median must
have doubled or halved as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from predrain.features.feature_schema import NAMES_IN_ORDER, POSITION
from predrain.models.forecast.drive_family import MAKERS, maker_of
from predrain.models.forecast.landmarks import Landmarks, hash_serials

POINTS: Final = 64
RECENT: Final = 365
"""Length in days of the last part of a family's landmarks that is sketched."""
LANDMARKS_MAX: Final = 20_000
MODELS_MAX: Final = 12
"""Number of models with a sketch of their own. It limits the size of the file and of the metrics in a varied fleet."""
LEAST: Final = 100
"""Number of drives below which a family is neither sketched nor judged."""
WATCHED: Final = 30
"""Days of readings that a drive needs to be compared: with fewer, its changes over 30 days are incomplete."""
AGEING: Final = frozenset({"hours", "loads_life", "written_life", "read_life"})
"""Age, and averages over a life. They change by themselves in every fleet, and the forecast allows for age."""
PSI_LIMIT: Final = 0.25
RESTLESS: Final = 2.0
"""A feature has drifted only if its stability index is this many times the largest one of a training stretch."""
TIMES: Final = 2.0
"""Factor by which a median score must have changed."""
STRETCHES_MAX: Final = 52
LEVEL: Final = 0.001
MISSING_LIMIT: Final = 0.1
"""Change of the share of drives without a feature that counts as a difference."""
_FLOOR: Final = 0.005
"""Smallest share of a bin, because a bin that was empty in the sketch may hold a few drives by chance."""
SCORE: Final = "p_fail_30d"


class DistributionSketch(msgspec.Struct, frozen=True):
    """A distribution in a few numbers."""

    missing: float
    """Share of values that were not reported."""
    points: tuple[float, ...]
    """POINTS mid-quantiles of the reported values, rising; empty if nothing was reported."""
    usual: float = 0.0
    """Largest stability index of a training stretch against the whole."""


class ModelFamily(msgspec.Struct, frozen=True):
    """The sketches of one model's drives in the training, or of a maker's models without a sketch of their own."""

    drives: int
    sketches: dict[str, DistributionSketch]
    """Feature -> sketch, and SCORE -> sketch of the forecasts for drives left out of fitting."""


class DriftReference(msgspec.Struct, frozen=True):
    """The content of `reference.json`: families by model, or by maker for its other models."""

    families: dict[str, ModelFamily]
    version: int = 1

    def find_family(self, model: str) -> str:
        """Return the name of the family with which a model is compared, or "" without one."""
        if model in self.families:
            return model
        maker = maker_of(model)
        return MAKERS[maker] if maker is not None and MAKERS[maker] in self.families else ""


@dataclass(frozen=True, slots=True)
class DriftShift:
    """The difference of one feature, or of the score, between the training and now."""

    name: str
    psi: float
    """Population stability index, 0 and up."""
    ks: float
    """Largest distance of the two distribution functions, in [0, 1]."""
    p: float
    """Probability of such a distance between samples of one distribution."""
    missing: float
    """Share not reported now minus the share in the training."""
    usual: float = 0.0
    """Largest stability index of a training stretch."""
    then: float | None = None
    """Median in the training, or None if nothing was reported."""
    now: float | None = None
    """Median now, or None if nothing was reported."""

    def has_drifted(self, tests: int) -> bool:
        """Return whether both tests find a drift. tests: the number of features that are tested at once."""
        differs = self.p < LEVEL / tests or abs(self.missing) > MISSING_LIMIT
        return self.psi >= max(PSI_LIMIT, RESTLESS * self.usual) and differs


@dataclass(frozen=True, slots=True)
class FamilyDrift:
    """The drift of a family since the training."""

    family: str
    """A model, a maker, or "" for drives that are not in the reference."""
    drives: int
    features: tuple[DriftShift, ...] = ()
    """The features, largest index first; empty if there are too few drives, or no reference."""
    score: DriftShift | None = None

    @property
    def drifted_features(self) -> tuple[DriftShift, ...]:
        """The features that have drifted, worst first."""
        return tuple(shift for shift in self.features if shift.has_drifted(len(self.features)))

    @property
    def score_drifted(self) -> bool:
        """True if the forecasts have drifted by more than age explains."""
        score = self.score
        if score is None or not score.then or score.now is None or not score.has_drifted(1):
            return False
        return not 1 / TIMES < score.now / score.then < TIMES


def reference_of(
    landmarks: Landmarks, p_30d: NDArray[np.float64], features: Sequence[str] = NAMES_IN_ORDER
) -> DriftReference:
    """Sketch the families of a training. p_30d: (landmarks,) forecasts by boosters that had not seen the drive.

    features: those that the forecast reads; a drift of the others does no harm.
    """
    names, at = np.unique(landmarks.model.astype(str), return_inverse=True)
    makers = np.array([-1 if (m := maker_of(str(name))) is None else m for name in names])
    members = {str(name): np.flatnonzero(at == place) for place, name in enumerate(names)}
    largest = sorted(members, key=lambda name: (-len(members[name]), name))[:MODELS_MAX]
    others = ~np.isin(names, largest)[at]
    of_makers = {
        maker: np.flatnonzero(others & (makers[at] == number)) for number, maker in enumerate(MAKERS)
    }
    chosen = {name: members[name] for name in largest} | of_makers
    made = {
        name: _sketch_family(landmarks, p_30d, rows, features)
        for name, rows in chosen.items()
        if len(rows) >= LEAST
    }
    return DriftReference({name: family for name, family in made.items() if family.drives >= LEAST})


def measure_drift(
    reference: DriftReference | None,
    x: NDArray[np.float32],
    model: NDArray[np.object_],
    p_30d: NDArray[np.float64],
) -> tuple[FamilyDrift, ...]:
    """Compare drives in service with the reference. x: (drives, features), one row a drive. model, p_30d: (drives,)."""
    groups = np.array(
        ["" if reference is None else reference.find_family(str(name)) for name in model], dtype=object
    )
    found = []
    for name in sorted(set(groups.tolist())):
        rows = np.flatnonzero(groups == name)
        if reference is None or not name or len(rows) < LEAST:
            found.append(FamilyDrift(name, len(rows)))
            continue
        then = reference.families[name].sketches
        shifts = [
            _measure_shift(feature, then[feature], x[rows, column])
            for column, feature in enumerate(NAMES_IN_ORDER)
            if feature in then and feature not in AGEING
        ]
        shifts.sort(key=lambda shift: (-shift.psi, shift.name))
        found.append(
            FamilyDrift(name, len(rows), tuple(shifts), _measure_shift(SCORE, then[SCORE], p_30d[rows]))
        )
    return tuple(found)


def _sketch_family(
    landmarks: Landmarks, p_30d: NDArray[np.float64], rows: NDArray[np.int64], features: Sequence[str]
) -> ModelFamily:
    recent = rows[landmarks.day[rows] > landmarks.day[rows].max() - RECENT]
    every = -(-len(recent) // LANDMARKS_MAX)
    if every > 1:
        recent = recent[
            (hash_serials(landmarks.serial[recent]) // 17 + landmarks.day[recent] // 7) % every == 0
        ]
    weight = landmarks.weight[recent]
    stretches = np.array_split(
        np.argsort(landmarks.day[recent], kind="stable"),
        int(np.clip(len(recent) // LEAST, 2, STRETCHES_MAX)),
    )
    sketches = {
        name: _sketch_distribution(landmarks.x[recent, POSITION[name]], weight, stretches)
        for name in features
    }
    sketches[SCORE] = _sketch_distribution(p_30d[recent], weight, stretches)
    return ModelFamily(len(np.unique(hash_serials(landmarks.serial[recent]))), sketches)


def _sketch_distribution(
    values: NDArray[np.float32] | NDArray[np.float64],
    weight: NDArray[np.float64],
    stretches: Sequence[NDArray[np.int64]],
) -> DistributionSketch:
    told = ~np.isnan(values)
    share = float(weight[~told].sum() / weight.sum())
    if not told.any():
        return DistributionSketch(1.0, ())
    order = np.argsort(values[told], kind="stable")
    rising, mass = values[told][order], np.cumsum(weight[told][order])
    at = np.searchsorted(mass, (np.arange(POINTS) + 0.5) / POINTS * mass[-1])
    sketch = DistributionSketch(
        round(share, 6), tuple(_round_to_four_digits(float(value)) for value in rising[at])
    )
    strayed = (_compute_psi(sketch, values[rows], weight[rows]) for rows in stretches)
    return DistributionSketch(sketch.missing, sketch.points, _round_to_four_digits(max(strayed, default=0.0)))


def _round_to_four_digits(value: float) -> float:
    """Round to four digits, which are enough for a sketch and keep the file small."""
    return float(f"{value:.4g}")


def _measure_shift(
    name: str, then: DistributionSketch, now: NDArray[np.float32] | NDArray[np.float64]
) -> DriftShift:
    told = now[~np.isnan(now)].astype(np.float64)
    more = 1 - len(told) / len(now) - then.missing
    psi = _compute_psi(then, now, np.ones(len(now)))
    if not then.points or not len(told):
        return DriftShift(name, psi, 0.0, 1.0, more, then.usual)
    medians = float(np.median(then.points)), float(np.median(told))
    tested = _compare_distributions(np.sort(then.points), np.sort(told))
    return DriftShift(name, psi, *tested, more, then.usual, *medians)


def _compare_distributions(then: NDArray[np.float64], now: NDArray[np.float64]) -> tuple[float, float]:
    """Return the statistic of Kolmogorov and Smirnov and its p-value by the limit distribution.

    then, now: sorted values.
    """
    both = np.concatenate([then, now])
    shares = [np.searchsorted(values, both, side="right") / len(values) for values in (then, now)]
    apart = float(np.abs(shares[0] - shares[1]).max())
    size = len(then) * len(now) / (len(then) + len(now))
    return apart, compute_kolmogorov_tail(math.sqrt(size) * apart)


def compute_kolmogorov_tail(scaled: float) -> float:
    """Compute the probability that Kolmogorov's limit distribution exceeds `scaled`, 0 or more, to 1e-14.

    The result is that of `scipy.special.kolmogorov`; SciPy is 40 MB of a package and only training needs it.
    """
    if scaled < 0.04:  # the tail differs from 1 by less than 1e-300
        return 1.0
    if scaled < 1.0:  # Jacobi's form of the series, which converges there
        odd = [math.exp(-((2 * k - 1) ** 2) * math.pi**2 / (8 * scaled**2)) for k in range(1, 6)]
        return 1.0 - math.sqrt(2 * math.pi) / scaled * math.fsum(odd)
    return 2.0 * math.fsum((-1) ** (k - 1) * math.exp(-2 * (k * scaled) ** 2) for k in range(1, 6))


def _compute_psi(
    then: DistributionSketch, now: NDArray[np.float32] | NDArray[np.float64], weight: NDArray[np.float64]
) -> float:
    """Compute the stability index over the sketch's tenths (fewer where values repeat), and one bin for
    missing values."""
    told = ~np.isnan(now)
    points = np.array(then.points)
    edges = (
        np.unique(np.quantile(points, np.arange(1, 10) / 10, method="inverted_cdf"))
        if len(points)
        else points
    )
    expected = np.append(_sum_bin_weights(points, edges, np.ones(len(points))), 0.0) / max(len(points), 1)
    expected *= 1 - then.missing
    expected[-1] = then.missing
    observed = np.append(_sum_bin_weights(now[told], edges, weight[told]), weight[~told].sum()) / weight.sum()
    expected, observed = (np.maximum(shares, _FLOOR) for shares in (expected, observed))
    expected, observed = expected / expected.sum(), observed / observed.sum()
    return float(((observed - expected) * np.log(observed / expected)).sum())


def _sum_bin_weights(
    values: NDArray[np.float32] | NDArray[np.float64], edges: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weight of the values in each bin: up to the first edge, ..., above the last."""
    bins = np.searchsorted(edges, values, side="left")
    return np.bincount(bins, weight, minlength=len(edges) + 1).astype(np.float64)


def is_watched_long_enough(first_day: Sequence[int], day: int) -> NDArray[np.bool_]:
    """Return for each drive whether it has been read for long enough to be compared: (drives,)."""
    return np.array([0 <= first <= day - WATCHED for first in first_day], dtype=bool)
