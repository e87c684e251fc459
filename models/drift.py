"""Whether the drives of a family still look as those that the bundle was trained on, and are judged as those were.

A bundle keeps a small sketch of each feature and of the score, by family, in `reference.json`. Two tests must agree
before a family is called drifted: the population stability index (Siddiqi 2006: 0.1 to 0.25 some, above 0.25 much) and
the two-sample Kolmogorov-Smirnov test at a level shared among all features. Work and temperature move from week to week
in every fleet, all drives together: the sketch remembers how far single stretches of the training, a week or as many
as hold 100 landmarks, strayed from the whole, and a feature has to leave that behind. The score also follows age, in
steps: it has drifted when its median has doubled or halved as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from predrain.features.schema import NAMES_IN_ORDER, POSITION
from predrain.models.family import MAKERS, maker_of
from predrain.models.landmarks import Landmarks, crc

POINTS: Final = 64
RECENT: Final = 365
"""Days before a family's last landmark from which its sketch is made."""
LANDMARKS_MAX: Final = 20_000
MODELS_MAX: Final = 12
"""Models with a sketch of their own, so that neither file nor metrics grow with the variety of a fleet."""
LEAST: Final = 100
"""Drives below which a family is neither sketched nor judged."""
WATCHED: Final = 30
"""Days of readings below which a drive is left out: its changes over 30 days are not whole."""
AGEING: Final = frozenset({"hours", "loads_life", "written_life", "read_life"})
"""Age, and averages over a life: they move by themselves in every fleet, and the forecast allows for age."""
PSI_LIMIT: Final = 0.25
RESTLESS: Final = 2.0
"""How many times farther than any stretch of the training a feature must have strayed."""
TIMES: Final = 2.0
"""Times by which a median score must have changed."""
STRETCHES_MAX: Final = 52
LEVEL: Final = 0.001
MISSING_LIMIT: Final = 0.1
"""Change of the share of drives that do not report a feature."""
_FLOOR: Final = 0.005
"""Least share of a bin: one that was empty in the sketch may hold a few drives by chance."""
SCORE: Final = "p_fail_30d"


class Sketch(msgspec.Struct, frozen=True):
    """A distribution in few numbers."""

    missing: float
    """Share that was not reported."""
    points: tuple[float, ...]
    """POINTS mid-quantiles of the rest, rising; empty when nothing was reported."""
    usual: float = 0.0
    """Largest stability index of a stretch of the training against the whole."""


class ModelFamily(msgspec.Struct, frozen=True):
    """How the drives of one model, or of a maker's models without a sketch of their own, looked in training."""

    drives: int
    sketches: dict[str, Sketch]
    """By feature, and SCORE for what was forecast of drives left out of fitting."""


class Reference(msgspec.Struct, frozen=True):
    """What `reference.json` holds: families by model, or by maker for its other models."""

    families: dict[str, ModelFamily]
    version: int = 1

    def group(self, model: str) -> str:
        """The family that a model is compared with; "" when there is none."""
        if model in self.families:
            return model
        maker = maker_of(model)
        return MAKERS[maker] if maker is not None and MAKERS[maker] in self.families else ""


@dataclass(frozen=True, slots=True)
class Shift:
    """One feature (or the score) then and now."""

    name: str
    psi: float
    """Population stability index, 0 and up."""
    ks: float
    """Largest distance of the two distribution functions, in [0, 1]."""
    p: float
    """Chance of such a distance between samples of one distribution."""
    missing: float
    """Share not reported now, less the share then."""
    usual: float = 0.0
    """The largest stability index of a stretch of the training."""
    then: float | None = None
    """Median in training, and..."""
    now: float | None = None
    """...now; None where nothing was reported."""

    def drifted(self, tests: int) -> bool:
        """Whether both tests say so; tests: how many features are asked at once."""
        differs = self.p < LEVEL / tests or abs(self.missing) > MISSING_LIMIT
        return self.psi >= max(PSI_LIMIT, RESTLESS * self.usual) and differs


@dataclass(frozen=True, slots=True)
class FamilyDrift:
    """A family now against its training."""

    family: str
    """A model, a maker, or "" for drives that the reference knows nothing of."""
    drives: int
    features: tuple[Shift, ...] = ()
    """Largest index first; empty where there are too few drives, or no reference, to judge by."""
    score: Shift | None = None

    @property
    def drifted(self) -> tuple[Shift, ...]:
        """The features that have drifted, worst first."""
        return tuple(shift for shift in self.features if shift.drifted(len(self.features)))

    @property
    def score_drifted(self) -> bool:
        """Whether what is forecast has drifted, by more than age explains."""
        score = self.score
        if score is None or not score.then or score.now is None or not score.drifted(1):
            return False
        return not 1 / TIMES < score.now / score.then < TIMES


def reference_of(
    landmarks: Landmarks, p_30d: NDArray[np.float64], features: Sequence[str] = NAMES_IN_ORDER
) -> Reference:
    """Sketch the families of a training. p_30d: (landmarks,) forecast by boosters that had not seen the drive.

    features: those that the forecast reads; what it does not read may drift without harm.
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
        name: _family(landmarks, p_30d, rows, features) for name, rows in chosen.items() if len(rows) >= LEAST
    }
    return Reference({name: family for name, family in made.items() if family.drives >= LEAST})


def drift(
    reference: Reference | None,
    x: NDArray[np.float32],
    model: NDArray[np.object_],
    p_30d: NDArray[np.float64],
) -> tuple[FamilyDrift, ...]:
    """Compare drives in service with the reference. x: (drives, features), one row a drive; model, p_30d: (drives,)."""
    groups = np.array(
        ["" if reference is None else reference.group(str(name)) for name in model], dtype=object
    )
    found = []
    for name in sorted(set(groups.tolist())):
        rows = np.flatnonzero(groups == name)
        if reference is None or not name or len(rows) < LEAST:
            found.append(FamilyDrift(name, len(rows)))
            continue
        then = reference.families[name].sketches
        shifts = [
            _shift(feature, then[feature], x[rows, column])
            for column, feature in enumerate(NAMES_IN_ORDER)
            if feature in then and feature not in AGEING
        ]
        shifts.sort(key=lambda shift: (-shift.psi, shift.name))
        found.append(FamilyDrift(name, len(rows), tuple(shifts), _shift(SCORE, then[SCORE], p_30d[rows])))
    return tuple(found)


def _family(
    landmarks: Landmarks, p_30d: NDArray[np.float64], rows: NDArray[np.int64], features: Sequence[str]
) -> ModelFamily:
    recent = rows[landmarks.day[rows] > landmarks.day[rows].max() - RECENT]
    every = -(-len(recent) // LANDMARKS_MAX)
    if every > 1:
        recent = recent[(crc(landmarks.serial[recent]) // 17 + landmarks.day[recent] // 7) % every == 0]
    weight = landmarks.weight[recent]
    stretches = np.array_split(
        np.argsort(landmarks.day[recent], kind="stable"),
        int(np.clip(len(recent) // LEAST, 2, STRETCHES_MAX)),
    )
    sketches = {name: _sketch(landmarks.x[recent, POSITION[name]], weight, stretches) for name in features}
    sketches[SCORE] = _sketch(p_30d[recent], weight, stretches)
    return ModelFamily(len(np.unique(crc(landmarks.serial[recent]))), sketches)


def _sketch(
    values: NDArray[np.float32] | NDArray[np.float64],
    weight: NDArray[np.float64],
    stretches: Sequence[NDArray[np.int64]],
) -> Sketch:
    told = ~np.isnan(values)
    share = float(weight[~told].sum() / weight.sum())
    if not told.any():
        return Sketch(1.0, ())
    order = np.argsort(values[told], kind="stable")
    rising, mass = values[told][order], np.cumsum(weight[told][order])
    at = np.searchsorted(mass, (np.arange(POINTS) + 0.5) / POINTS * mass[-1])
    sketch = Sketch(round(share, 6), tuple(_short(float(value)) for value in rising[at]))
    strayed = (_psi(sketch, values[rows], weight[rows]) for rows in stretches)
    return Sketch(sketch.missing, sketch.points, _short(max(strayed, default=0.0)))


def _short(value: float) -> float:
    """Four digits are enough for a sketch, and make a small file."""
    return float(f"{value:.4g}")


def _shift(name: str, then: Sketch, now: NDArray[np.float32] | NDArray[np.float64]) -> Shift:
    told = now[~np.isnan(now)].astype(np.float64)
    more = 1 - len(told) / len(now) - then.missing
    psi = _psi(then, now, np.ones(len(now)))
    if not then.points or not len(told):
        return Shift(name, psi, 0.0, 1.0, more, then.usual)
    from scipy.stats import ks_2samp

    medians = float(np.median(then.points)), float(np.median(told))
    tested: Any = ks_2samp(then.points, told, method="asymp")
    return Shift(name, psi, float(tested.statistic), float(tested.pvalue), more, then.usual, *medians)


def _psi(then: Sketch, now: NDArray[np.float32] | NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """Over the sketch's tenths (fewer where values repeat), and one bin for what is not reported."""
    told = ~np.isnan(now)
    points = np.array(then.points)
    edges = (
        np.unique(np.quantile(points, np.arange(1, 10) / 10, method="inverted_cdf"))
        if len(points)
        else points
    )
    expected = np.append(_mass(points, edges, np.ones(len(points))), 0.0) / max(len(points), 1)
    expected *= 1 - then.missing
    expected[-1] = then.missing
    observed = np.append(_mass(now[told], edges, weight[told]), weight[~told].sum()) / weight.sum()
    expected, observed = (np.maximum(shares, _FLOOR) for shares in (expected, observed))
    expected, observed = expected / expected.sum(), observed / observed.sum()
    return float(((observed - expected) * np.log(observed / expected)).sum())


def _mass(
    values: NDArray[np.float32] | NDArray[np.float64], edges: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weight of the values in each bin: up to the first edge, ..., above the last."""
    bins = np.searchsorted(edges, values, side="left")
    return np.bincount(bins, weight, minlength=len(edges) + 1).astype(np.float64)


def watched(first_day: Sequence[int], day: int) -> NDArray[np.bool_]:
    """(drives,) which have been read for long enough to be compared."""
    return np.array([0 <= first <= day - WATCHED for first in first_day], dtype=bool)
