"""A fleet's own experience: how long drives of each model were scored here, and how many of them died."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from predrain.data.lifespan import Lifespans
from predrain.data.outlook import Status
from predrain.data.scorebook import ScorebookForecasts
from predrain.models.forecast.calibration import Thresholds
from predrain.models.forecast.drive_family import YEAR, normalize_model
from predrain.models.forecast.fleet_thresholds import FollowedThresholds, follow_thresholds


@dataclass(frozen=True, slots=True)
class Experience:
    """The outcomes of a fleet's own drives of one model."""

    drives: int
    deaths: float
    quiet_deaths: float
    """Deaths of drives that showed no symptom before."""
    quiet_years: float
    """Drive-years of drives without a symptom."""


@dataclass(frozen=True, slots=True)
class FleetExperience:
    """The experience of one bundle with the fleet that it scores."""

    models: Mapping[str, Experience] = field(default_factory=dict)
    """Model (by `normalize_model`) -> experience."""
    thresholds: FollowedThresholds | None = None
    """None if nothing was scored yet; then the bundle's own thresholds count."""


def learn_from_fleet(
    book: ScorebookForecasts, ends: Lifespans, shipped: Thresholds, today: int
) -> FleetExperience:
    """Compute a fleet's experience from the forecasts of one bundle.

    shipped: the bundle's own thresholds. today: days since 1970-01-01.
    """
    return FleetExperience(count_experience(book, ends), follow_thresholds(book, ends, shipped, today))


def count_experience(book: ScorebookForecasts, ends: Lifespans) -> Mapping[str, Experience]:
    """Count a fleet's experience by model, from the forecasts of one bundle. ends: by device, as far as they are known.

    A drive is exposed from its first forecast to its last, or to its death. It is quiet on days on which it was
    forecast to be good.
    """
    if not len(book):
        return {}
    first = np.flatnonzero(np.concatenate([[True], book.device[1:] != book.device[:-1]]))
    last = np.append(first[1:], len(book)) - 1
    at = ends.find_positions(book.device[first])
    died = np.zeros(len(first), dtype=bool)
    until = book.day[last].astype(np.int64)
    if len(ends.last):
        died = (at >= 0) & ends.died[at] & (ends.last[at] >= book.day[first])
        until = np.where(died, ends.last[at], until)
    lived = np.maximum(until - book.day[first], 1) / YEAR
    good = book.status == Status.GOOD
    share = np.add.reduceat(good.astype(np.float64), first) / (last - first + 1)
    raw, which = np.unique(book.model[first].astype(str), return_inverse=True)
    names, family = np.unique([normalize_model(str(name)) for name in raw], return_inverse=True)
    model = family[which]
    deaths = np.bincount(model, died, minlength=len(names))
    quiet_deaths = np.bincount(model, died & good[last], minlength=len(names))
    quiet_years = np.bincount(model, lived * share, minlength=len(names))
    drives = np.bincount(model, minlength=len(names))
    return {
        str(name): Experience(int(drives[i]), float(deaths[i]), float(quiet_deaths[i]), float(quiet_years[i]))
        for i, name in enumerate(names)
        if name
    }
