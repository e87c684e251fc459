"""Families of drives: how often a model dies, shrunk to its maker and to all, by age.

Rates are deaths per drive-year with a Gamma prior: a model's rate is drawn to its maker's as if 40 drive-years of it
had been seen, the maker's to all drives', and each year of age to the model's own rate times the shape that all
drives share. A model never seen has its maker's rate; a maker never seen has the pooled one and is "unknown".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from features.schema import POSITION
from models.landmarks import Landmarks

STRENGTH: Final = 40.0
"""Drive-years that a prior counts for (fitted to Backblaze's models to 2024: Gamma with shape 1.0, 40
drive-years)."""
YEAR: Final = 365.25
AGES: Final = 12
"""Years of age that are told apart; the last one stands for all later."""
MAKERS: Final = ("Seagate", "HGST", "WDC", "Toshiba", "Samsung")
_MAKER: Final = (
    (re.compile(r"^(SEAGATE |ST\d)", re.I), 0),
    (re.compile(r"^(HGST|HITACHI|HD[ST]\d|HU[AHS]\d)", re.I), 1),
    (re.compile(r"^(WDC|WD\d|WESTERN)", re.I), 2),
    (re.compile(r"^(TOSHIBA|MG0\d|MD0\d|DT01)", re.I), 3),
    (re.compile(r"^SAMSUNG", re.I), 4),
)


def maker_of(model: str) -> int | None:
    """Index into MAKERS of who made this model, by its name; None when the name tells nothing."""
    return next((maker for pattern, maker in _MAKER if pattern.match(model.strip())), None)


@dataclass(frozen=True, slots=True)
class Rates:
    """Deaths per drive-year by year of age: (AGES,) each."""

    pooled: tuple[float, ...]
    makers: Mapping[str, tuple[float, ...]]
    models: Mapping[str, tuple[float, ...]]

    def by_age(self, model: str) -> tuple[float, ...]:
        """The rates of this model, else of its maker, else of all drives."""
        known = self.models.get(model)
        if known is not None:
            return known
        maker = maker_of(model)
        return self.pooled if maker is None else self.makers.get(MAKERS[maker], self.pooled)

    def knows(self, model: str) -> bool:
        """Whether drives of this model, or of its maker, were learned from."""
        maker = maker_of(model)
        return model in self.models or (maker is not None and MAKERS[maker] in self.makers)


def years(hours: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.int64]:
    """Year of age, 0 for the first, from power-on hours; unknown hours count as the third year."""
    age = np.nan_to_num(np.asarray(hours, dtype=np.float64), nan=2.5 * 24 * YEAR) / (24.0 * YEAR)
    return np.clip(age, 0, AGES - 1).astype(np.int64)


Counts = Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Of each model: deaths and drive-years, (AGES,) each."""


def whole_lives() -> Counts:
    """Counts of whole lives to 2025, as committed (models/tables): not for a forecaster of an earlier day."""
    table = msgspec.json.decode(
        (files("models.tables") / "lives.json").read_bytes(), type=dict[str, list[list[float]]]
    )
    return {model: (np.array(rows)[:, 0], np.array(rows)[:, 1]) for model, rows in table.items()}


def rates_of(landmarks: Landmarks, step: int, lives: Counts | None = None) -> Rates:
    """Rates from weekly landmarks: each stands for `step` days at risk and for a death inside them.

    lives: counts of whole lives; of a model that they hold, they are used instead of the landmarks.
    """
    age = years(landmarks.x[:, POSITION["hours"]])
    exposure = landmarks.weight * np.minimum(landmarks.follow, step) / YEAR
    deaths = landmarks.weight * (landmarks.died & (landmarks.follow <= step))
    names, model = np.unique(landmarks.model.astype(str), return_inverse=True)
    seen = np.zeros((len(names), AGES))
    died = np.zeros((len(names), AGES))
    np.add.at(seen, (model, age), exposure)
    np.add.at(died, (model, age), deaths)
    counts = {str(name): (died[place], seen[place]) for place, name in enumerate(names)}
    return shrunk(counts | dict(lives or {}))


def shrunk(tables: Counts) -> Rates:
    """Rates from deaths and drive-years, drawn to what they have in common."""
    maker_by = {name: maker_of(name) for name in tables}
    died_all = np.sum([died for died, _ in tables.values()], axis=0)
    seen_all = np.sum([seen for _, seen in tables.values()], axis=0)
    overall = (died_all.sum() + 1.0) / (seen_all.sum() + STRENGTH)
    pooled = (died_all + STRENGTH * overall) / (seen_all + STRENGTH)
    shape = pooled / overall

    def drawn(
        died: NDArray[np.float64], seen: NDArray[np.float64], to: float
    ) -> tuple[float, NDArray[np.float64]]:
        level = (died.sum() + STRENGTH * to) / ((seen * shape).sum() + STRENGTH)
        expected = level * shape
        return float(level), (died + 5 * STRENGTH * expected) / (seen + 5 * STRENGTH)

    makers: dict[str, tuple[float, ...]] = {}
    level_of: dict[int | None, float] = {None: float(overall)}
    for index, maker in enumerate(MAKERS):
        mine = [tables[name] for name in tables if maker_by[name] == index]
        if mine:
            died, seen = (np.sum([table[part] for table in mine], axis=0) for part in (0, 1))
            level_of[index], by_age = drawn(died, seen, overall)
            makers[maker] = _plain(by_age)
    models = {
        name: _plain(drawn(died, seen, level_of[maker_by[name]])[1]) for name, (died, seen) in tables.items()
    }
    return Rates(_plain(pooled), makers, models)


def _plain(rates: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(rate) for rate in rates)


COLUMNS: Final = ("family_rate", "maker")
"""Columns that are appended to the features: the family's rate at this age (log, per drive-year), and the maker."""


def family_columns(
    rates: Rates, model: NDArray[np.object_], hours: NDArray[np.float32]
) -> NDArray[np.float32]:
    """(landmarks, 2): log rate of the family at this age; index of the maker, NaN when unknown."""
    names, at = np.unique(model.astype(str), return_inverse=True)
    table = np.array([rates.by_age(str(name)) for name in names]).reshape(len(names), AGES)
    makers = np.array([np.nan if (m := maker_of(str(name))) is None else m for name in names])
    out = np.empty((len(model), 2), dtype=np.float32)
    out[:, 0] = np.log(table[at, years(hours)]) if len(names) else 0.0
    out[:, 1] = makers[at] if len(names) else 0.0
    return out
