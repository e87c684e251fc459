"""A fleet's own experience: how long drives of each model were scored here, and how many of them died."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from predrain.data.lifespan import Lifespans
from predrain.data.outlook import Status
from predrain.data.scorebook import ScorebookForecasts
from predrain.models.calibrate import Thresholds
from predrain.models.family import YEAR, normalize_model
from predrain.models.fleet_thresholds import FollowedThresholds, follow_thresholds


@dataclass(frozen=True, slots=True)
class Experience:
    """What became of a fleet's own drives of one model."""

    drives: int
    deaths: float
    quiet_deaths: float
    """Of drives that showed nothing before."""
    quiet_years: float
    """Drive-years of drives that showed nothing."""


@dataclass(frozen=True, slots=True)
class FleetExperience:
    """What one bundle has learned from the fleet that it scores."""

    models: Mapping[str, Experience] = field(default_factory=dict)
    """By `normalize_model`."""
    thresholds: FollowedThresholds | None = None
    """None: nothing was scored yet, and the bundle's own thresholds count."""


def learn_from_fleet(
    book: ScorebookForecasts, ends: Lifespans, shipped: Thresholds, today: int
) -> FleetExperience:
    """A fleet's experience from the forecasts of one bundle. shipped: the bundle's own thresholds. today: days since
    1970-01-01."""
    return FleetExperience(count_experience(book, ends), follow_thresholds(book, ends, shipped, today))


def count_experience(book: ScorebookForecasts, ends: Lifespans) -> Mapping[str, Experience]:
    """A fleet's experience by model, from the forecasts of one bundle. ends: by device, as far as they are known.

    A drive is exposed from its first forecast to its last, or to its death; it is quiet on days on which it was
    forecast to be good.
    """
    if not len(book):
        return {}
    first = np.flatnonzero(np.concatenate([[True], book.device[1:] != book.device[:-1]]))
    last = np.append(first[1:], len(book)) - 1
    at = ends.of(book.device[first])
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
