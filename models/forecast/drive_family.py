"""Families of drives: how often a model dies, by age, shrunk to the rate of its maker and of all makers.

A model's rate is its deaths per drive-year with a Gamma prior. The prior draws it to the typical rate of its
maker's models, as if STRENGTH drive-years at that rate had been seen. Makers are drawn to each other, and all of
them to POPULATION, as if PRIOR_MAKERS further makers had it. A model never seen has its maker's typical rate, and a
maker never seen the typical rate of all makers. Each model counts once in a typical rate, however many drives of it
a fleet bought. Ages share one shape, standardised for the models that reached them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from predrain.features.feature_schema import POSITION
from predrain.models.forecast.landmarks import Landmarks

STRENGTH: Final = 40.0
"""Drive-years that a prior counts for (fitted to Backblaze's models to 2024: Gamma with shape 1.0, 40 drive-years)."""
POPULATION: Final = 1.0 / STRENGTH
"""Deaths per drive-year of a model without any data: the mean of the same Gamma.

Field studies of whole fleets give 0.02 to 0.04 (Schroeder and Gibson 2007) and 0.017 in the first year (Pinheiro,
Weber and Barroso 2007).
"""
PRIOR_MAKERS: Final = 2.0
"""Number of makers that POPULATION counts for."""
PRIOR_MODELS: Final = 2.0
"""Number of models that the rate of all makers counts for, beside a maker's own models."""
SHAPE_DEATHS: Final = 20.0
"""Number of deaths by which an age's share of the common shape is drawn to 1."""
EVIDENCE_MAX: Final = 10.0
"""Largest number of deaths that foreign counts of a model are worth beside a fleet's own: fleets differ by about a
third."""
YEAR: Final = 365.25
AGES: Final = 12
"""Number of years of age that are distinguished; the last one stands for all later years."""
UNKNOWN_AGE: Final = 2
"""Year of age, 0 for the first, that is assumed for drives of unknown age."""
MAKERS: Final = ("Seagate", "HGST", "WDC", "Toshiba", "Samsung")
_MAKER: Final = (
    (re.compile(r"^(SEAGATE |ST\d)", re.I), 0),
    (re.compile(r"^(HGST|HITACHI|H[DT][ST]\d|HU[AHS]\d|HMS\d|WU[HS]\d)", re.I), 1),
    (re.compile(r"^(WDC|WD\d|WESTERN)", re.I), 2),
    (re.compile(r"^(TOSHIBA|M[GDKQ]\d\d|HDW[A-Z]|DT\d\d)", re.I), 3),
    (re.compile(r"^SAMSUNG", re.I), 4),
)
_VENDOR: Final = re.compile(r"^(?:ATA |WDC |WD |WESTERN DIGITAL |HGST |HITACHI |SEAGATE |TOSHIBA )+")
_VARIANT: Final = re.compile(r"^((?:ST\d|WD\d)[A-Z0-9]{5,})-\w+$")


def normalize_model(name: str) -> str:
    """Return the model without a vendor's name, blanks and the variant's suffix, in upper case.

    `WDC WD40EFRX-68WT0N0` is `WD40EFRX`, `ST4000DM000-1F2168` is `ST4000DM000`, and `wdc wuh721816ale6l4` is
    `WUH721816ALE6L4`. A name under which an OEM sells another maker's drive stays as it is, because the drive
    behind it differs by delivery.
    """
    model = " ".join(name.upper().split())
    match = _VENDOR.match(model)
    if (
        match and _find_maker(model[match.end() :]) is not None
    ):  # else the vendor's name alone tells the maker
        model = model[match.end() :]
    variant = _VARIANT.match(model)
    return variant[1] if variant else model


def maker_of(model: str) -> int | None:
    """Return the index into MAKERS of the maker of this model, by its name, or None if the name does not tell it."""
    return _find_maker(normalize_model(model))


def _find_maker(name: str) -> int | None:
    return next((maker for pattern, maker in _MAKER if pattern.match(name)), None)


@dataclass(frozen=True, slots=True)
class DeathRates:
    """Deaths per drive-year by year of age: (AGES,) each."""

    pooled: tuple[float, ...]
    makers: Mapping[str, tuple[float, ...]]
    models: Mapping[str, tuple[float, ...]]
    """Model name -> rates. Since version 2 of bundles the name is that of `normalize_model`."""
    evidence: Mapping[str, float] = field(default_factory=dict)
    """Model -> number of deaths that its rate is worth beside a fleet's own counts; 1 for a missing model."""

    def by_age(self, model: str) -> tuple[float, ...]:
        """Return the rates of this model, else of its maker, else of all drives."""
        known = self.models.get(model) or self.models.get(normalize_model(model))
        if known is not None:
            return known
        maker = maker_of(model)
        return self.pooled if maker is None else self.makers.get(MAKERS[maker], self.pooled)

    def count_evidence_deaths(self, model: str) -> float:
        """Return the number of deaths that the model's rate is worth.

        The number is infinite in version 1 of bundles, which take rates for certain.
        """
        return self.evidence.get(normalize_model(model), 1.0) if self.evidence else math.inf

    def update(self, own: Mapping[str, tuple[float, float]]) -> DeathRates:
        """Return these rates after a fleet's own observations: the Gamma posterior of each model.

        own: model -> deaths seen, deaths expected at these rates. A foreign rate counts as its evidence in deaths,
        and the rate of a model never counted as one death. The models of a maker that were never counted share the
        typical rate, so the posterior of all of them together is computed first.
        """
        sums: dict[int | None, tuple[float, float]] = {}
        for name in own:
            if not self._counts(name):
                maker = maker_of(name)
                deaths, expected = sums.get(maker, (0.0, 0.0))
                sums[maker] = deaths + own[name][0], expected + own[name][1]
        typical = {maker: (1 + deaths) / (1 + expected) for maker, (deaths, expected) in sums.items()}
        makers = {
            maker: _to_float_tuple(np.array(self.makers.get(maker, self.pooled)) * typical.get(number, 1.0))
            for number, maker in enumerate(MAKERS)
            if maker in self.makers or number in typical
        }
        pooled = _to_float_tuple(np.array(self.pooled) * typical.get(None, 1.0))
        models, evidence = dict(self.models), dict(self.evidence)
        for name, (deaths, expected) in own.items():
            model = normalize_model(name)
            times = 1.0 if self._counts(name) else typical[maker_of(name)]
            worth = min(self.evidence.get(model, 1.0), EVIDENCE_MAX)
            times *= (worth + deaths) / (worth + times * expected)
            evidence[model] = worth + deaths
            models[model] = _to_float_tuple(np.array(self.by_age(name)) * times)
        return DeathRates(pooled, makers, models, evidence)

    def _counts(self, model: str) -> bool:
        """Return whether drives of this model were counted."""
        return model in self.models or normalize_model(model) in self.models


def compute_age_years(hours: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the year of age, 0 for the first, from power-on hours; UNKNOWN_AGE where they are not known."""
    unknown = (UNKNOWN_AGE + 0.5) * 24 * YEAR
    age = np.nan_to_num(np.asarray(hours, dtype=np.float64), nan=unknown) / (24.0 * YEAR)
    return np.clip(age, 0, AGES - 1).astype(np.int64)


Counts = Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Model -> deaths and drive-years, (AGES,) each."""
PublicCounts = Mapping[str, tuple[float, float]]
"""Model -> deaths and drive-years of all ages together."""


class PublicTable(msgspec.Struct, frozen=True):
    """The content of `public_counts.json`."""

    source: str
    terms: str
    until: str
    """The last day counted."""
    models: dict[str, tuple[int, int, float]]
    """Model -> drives, deaths, drive-years."""

    @property
    def counts(self) -> PublicCounts:
        """Model -> deaths and drive-years."""
        return {name: (float(died), lived) for name, (_, died, lived) in self.models.items()}


PUBLIC_TIMES: Final = 4.0
"""Public counts of a model replace those of the history if they have more than this many times its drive-years."""


def whole_lives() -> Counts:
    """Load counts of whole lives to 2025, as committed (models/tables). They are not for a forecaster of an earlier
    day."""
    table = msgspec.json.decode(
        (files("predrain.models.tables") / "lives.json").read_bytes(), type=dict[str, list[list[float]]]
    )
    return {model: (np.array(rows)[:, 0], np.array(rows)[:, 1]) for model, rows in table.items()}


@cache
def load_public_counts() -> PublicTable:
    """Load public counts of failures by model, as committed (models/tables). They are not for a forecaster of an
    earlier day."""
    return msgspec.json.decode(
        (files("predrain.models.tables") / "public_counts.json").read_bytes(), type=PublicTable
    )


def rates_of(
    landmarks: Landmarks, step: int, lives: Counts | None = None, public: PublicCounts | None = None
) -> DeathRates:
    """Compute rates from weekly landmarks: each stands for `step` days at risk and for a death inside them.

    lives: counts of whole lives, which replace the landmarks' counts of the same models. public: counts without
    ages (see `fit_rates`).
    """
    age = compute_age_years(landmarks.x[:, POSITION["hours"]])
    exposure = landmarks.weight * np.minimum(landmarks.follow, step) / YEAR
    deaths = landmarks.weight * (landmarks.died & (landmarks.follow <= step))
    raw, at = np.unique(landmarks.model.astype(str), return_inverse=True)
    names, family = np.unique([normalize_model(str(name)) for name in raw], return_inverse=True)
    model = family[at]
    seen = np.zeros((len(names), AGES))
    died = np.zeros((len(names), AGES))
    np.add.at(seen, (model, age), exposure)
    np.add.at(died, (model, age), deaths)
    counts = {str(name): (died[place], seen[place]) for place, name in enumerate(names)}
    return fit_rates(counts | dict(lives or {}), public)


def fit_rates(tables: Counts, public: PublicCounts | None = None) -> DeathRates:
    """Fit rates to deaths and drive-years, drawn to common rates. Names are those of `normalize_model`.

    public: deaths and drive-years of models without ages. They replace the counts in `tables` of a model if they
    have more than PUBLIC_TIMES as many drive-years.
    """
    names = sorted(tables)
    died = np.array([tables[name][0] for name in names]).reshape(len(names), AGES)
    seen = np.array([tables[name][1] for name in names]).reshape(len(names), AGES)
    level = (died.sum(axis=1) + STRENGTH * POPULATION) / (seen.sum(axis=1) + STRENGTH)
    shape = (died.sum(axis=0) + SHAPE_DEATHS) / (level @ seen + SHAPE_DEATHS)
    totals = {name: (float(died[i].sum()), float(seen[i] @ shape)) for i, name in enumerate(names)}
    ages = {name: (died[i], seen[i]) for i, name in enumerate(names)}
    for name, (deaths, drive_years) in (public or {}).items():
        if drive_years > PUBLIC_TIMES * totals.get(name, (0.0, 0.0))[1]:
            totals[name] = (deaths, drive_years)
            ages[name] = (np.zeros(AGES), np.zeros(AGES))
    all_makers, by_maker = _typical_rates(totals)
    models: dict[str, tuple[float, ...]] = {}
    for name, (deaths, drive_years) in totals.items():
        maker = maker_of(name)
        typical = all_makers if maker is None else by_maker[MAKERS[maker]]
        expected = (deaths + STRENGTH * typical) / (drive_years + STRENGTH) * shape
        dead, lived = ages[name]
        models[name] = _to_float_tuple((dead + 5 * STRENGTH * expected) / (lived + 5 * STRENGTH))
    return DeathRates(
        _to_float_tuple(all_makers * shape),
        {maker: _to_float_tuple(rate * shape) for maker, rate in by_maker.items()},
        models,
        {name: min(1.0 + deaths, EVIDENCE_MAX) for name, (deaths, _) in totals.items()},
    )


def _typical_rates(totals: PublicCounts) -> tuple[float, dict[str, float]]:
    """Return the typical rate of a model of a maker never seen, and maker -> typical rate, as geometric means over
    models."""
    logs: dict[int, list[tuple[float, float]]] = {}
    for name, (deaths, drive_years) in totals.items():
        rate = (deaths + STRENGTH * POPULATION) / (drive_years + STRENGTH)
        weight = drive_years / (drive_years + STRENGTH)
        if (maker := maker_of(name)) is not None:
            logs.setdefault(maker, []).append((weight, weight * float(np.log(rate))))
    sums = {maker: (sum(w for w, _ in rows), sum(log for _, log in rows)) for maker, rows in logs.items()}
    shares = {maker: weight / (weight + PRIOR_MODELS) for maker, (weight, _) in sums.items()}
    log_all = (
        PRIOR_MAKERS * np.log(POPULATION)
        + sum(shares[maker] * log / weight for maker, (weight, log) in sums.items() if weight > 0)
    ) / (PRIOR_MAKERS + sum(shares.values()))
    by_maker = {
        MAKERS[maker]: float(np.exp((PRIOR_MODELS * log_all + log) / (PRIOR_MODELS + weight)))
        for maker, (weight, log) in sums.items()
    }
    return float(np.exp(log_all)), by_maker


def _to_float_tuple(rates: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(rate) for rate in rates)


COLUMNS: Final = ("family_rate", "maker")
"""Columns that boosters of version 0.1.0 and challengers read beside the features.

The columns are the family's rate at this age (log, per drive-year), and the maker.
"""


def rates_at(
    rates: DeathRates, model: NDArray[np.object_], hours: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return deaths per drive-year of each drive's model at its age: (drives,). hours: (drives,) power-on hours."""
    names, at = np.unique(model.astype(str), return_inverse=True)
    table = np.array([rates.by_age(str(name)) for name in names]).reshape(len(names), AGES)
    return table[at, compute_age_years(hours)] if len(names) else np.zeros(0)


def family_columns(
    rates: DeathRates, model: NDArray[np.object_], hours: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return (landmarks, 2): log rate of the family at this age, and index of the maker, NaN when unknown."""
    names, at = np.unique(model.astype(str), return_inverse=True)
    makers = np.array([np.nan if (m := maker_of(str(name))) is None else m for name in names])
    out = np.empty((len(model), 2), dtype=np.float32)
    out[:, 0] = np.log(rates_at(rates, model, hours))
    out[:, 1] = makers[at] if len(names) else 0.0
    return out
