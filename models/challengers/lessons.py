"""What challengers learn from: the landmarks of the shipped recipe, and what was seen of the drives on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.history import HistoryFiles
from predrain.data.lifespan import HistorySource, sources_of
from predrain.features.ledger import FeatureLedger, ledger_of
from predrain.features.schema import POSITION
from predrain.features.vector import vectors
from predrain.models.challengers.film import CHANNELS, STEPS, films
from predrain.models.family import Rates, family_columns, rates_of
from predrain.models.hazard import Recipe
from predrain.models.landmarks import WEEKLY, Landmarks, draw, joined
from predrain.models.train import TooLittleHistory

FOLDS: Final = 3
DEATHS: Final = 20
"""From fewer there is nothing to learn."""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TrainingView:
    """Drives on days, as they were seen by then. All arrays have one entry a pair."""

    x: NDArray[np.float32]
    """(pairs, features and family columns)"""
    film: NDArray[np.float16]
    """(pairs, STEPS, CHANNELS); of no steps where no challenger looks at it."""
    model: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.x)

    def only(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> TrainingView:
        """These pairs alone."""
        return TrainingView(self.x[which], self.film[which], self.model[which])


@dataclass(frozen=True, slots=True)
class Lessons:
    """Landmarks, weighted as the recipe weighs them, with what was seen on each."""

    landmarks: Landmarks
    plain: NDArray[np.float64]
    """(landmarks,) weights before they were halved with age."""
    sight: TrainingView
    rates: Rates

    def only(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Lessons:
        """These landmarks alone."""
        return Lessons(self.landmarks.only(which), self.plain[which], self.sight.only(which), self.rates)


def lessons_of(
    paths: Sequence[Path], *, until: date, filmed: bool, seed: int, threads: int, tell: Tell
) -> Lessons:
    """Everything that is known on `until`. filmed: whether a challenger wants films. Raises UnreadableHistory,
    TooLittleHistory."""
    drawn: list[Landmarks] = []
    reels: list[NDArray[np.float16]] = []
    for source in sources_of(paths, until=until, threads=threads):
        drawn.append(draw(source, until=until, seed=seed, threads=threads, tell=tell))
        reels.append(
            _filmed(source, drawn[-1], until, threads, tell) if filmed else _unfilmed(len(drawn[-1]))
        )
    landmarks = joined(drawn)
    deaths = len(np.unique(landmarks.serial[landmarks.outcome(30)[0]].astype(str)))
    if deaths < DEATHS:
        raise TooLittleHistory(
            f"Only {deaths} deaths have readings in the 30 days before; give a history with {DEATHS} or more."
        )
    rates = rates_of(landmarks, WEEKLY.step)
    sight = TrainingView(matrix(landmarks.x, landmarks.model, rates), np.concatenate(reels), landmarks.model)
    aged = replace(landmarks, weight=landmarks.aged(Recipe().half_life))
    return Lessons(aged, landmarks.weight, sight, rates)


def seen(
    ledger: FeatureLedger,
    drive: NDArray[np.int64],
    day: NDArray[np.int64],
    model: NDArray[np.object_],
    rates: Rates,
    *,
    filmed: bool,
) -> TrainingView:
    """What is seen of these drives on these days."""
    x = matrix(vectors(ledger, drive, day), model, rates)
    return TrainingView(x, films(ledger, drive, day) if filmed else _unfilmed(len(x)), model)


def matrix(x: NDArray[np.float32], model: NDArray[np.object_], rates: Rates) -> NDArray[np.float32]:
    """Features with the family's columns beside them."""
    return np.column_stack([x, family_columns(rates, model, x[:, POSITION["hours"]])])


def _filmed(
    source: HistorySource, landmarks: Landmarks, until: date, threads: int, tell: Tell
) -> NDArray[np.float16]:
    files = HistoryFiles(list(source.files), threads=threads)
    wanted = frozenset(landmarks.serial.tolist())
    reels = np.zeros((len(landmarks), STEPS, CHANNELS), dtype=np.float16)

    def keep(names: Sequence[str]) -> NDArray[np.bool_]:
        return np.array([name in wanted for name in names], dtype=bool)

    for part in files.parts():
        history = files.read(until=until, part=part, keep=keep)
        number = {str(serial): place for place, serial in enumerate(history.serials)}
        drive = np.array([number.get(str(serial), -1) for serial in landmarks.serial], dtype=np.int64)
        mine = np.flatnonzero(drive >= 0)
        reels[mine] = films(ledger_of(history), drive[mine], landmarks.day[mine])
        tell(f"films of {source.files[0].name}: {len(mine):,}")
    return reels


def _unfilmed(count: int) -> NDArray[np.float16]:
    return np.zeros((count, 0, CHANNELS), dtype=np.float16)
