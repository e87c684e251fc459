"""The training data of challengers: the landmarks of the shipped recipe, and the drives as they were seen on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.history import HistoryFiles, describe_files
from predrain.data.lifespan import HistorySource, sources_of
from predrain.features.drive_history_rows import FeatureLedger, ledger_of
from predrain.features.feature_schema import POSITION
from predrain.features.feature_vectors import compute_feature_vectors
from predrain.models.forecast.drive_family import DeathRates, family_columns, rates_of
from predrain.models.forecast.hazard import Recipe
from predrain.models.forecast.landmarks import WEEKLY, Landmarks, draw_landmarks, join_landmarks
from predrain.models.forecast.training import TooLittleHistory
from predrain.models.lab.challengers.drive_film import CHANNELS, STEPS, build_films

FOLDS: Final = 3
DEATHS: Final = 20
"""The smallest number of deaths from which a challenger can learn."""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TrainingView:
    """Drives on certain days, as they were seen by then. All arrays have one entry for each pair of drive and day."""

    x: NDArray[np.float32]
    """(pairs, features and family columns)"""
    film: NDArray[np.float16]
    """(pairs, STEPS, CHANNELS); without steps if no challenger uses films."""
    model: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.x)

    def select_rows(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> TrainingView:
        """Return a view of these pairs only."""
        return TrainingView(self.x[which], self.film[which], self.model[which])


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Landmarks, weighted as the recipe weighs them, with the view of the drives on them."""

    landmarks: Landmarks
    plain: NDArray[np.float64]
    """(landmarks,) weights before they were reduced with age."""
    sight: TrainingView
    rates: DeathRates

    def select_rows(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> TrainingRows:
        """Return the training rows of these landmarks only."""
        return TrainingRows(
            self.landmarks.select_rows(which), self.plain[which], self.sight.select_rows(which), self.rates
        )


def lessons_of(
    paths: Sequence[Path], *, until: date, filmed: bool, seed: int, threads: int, tell: Tell
) -> TrainingRows:
    """Read all data that is known on `until`. filmed: whether a challenger needs films.

    Raises UnreadableHistory, TooLittleHistory.
    """
    drawn: list[Landmarks] = []
    reels: list[NDArray[np.float16]] = []
    for source in sources_of(paths, until=until, threads=threads):
        drawn.append(draw_landmarks(source, until=until, seed=seed, threads=threads, tell=tell))
        reels.append(
            _build_landmark_films(source, drawn[-1], until, threads, tell)
            if filmed
            else _build_empty_films(len(drawn[-1]))
        )
    landmarks = join_landmarks(drawn)
    deaths = len(np.unique(landmarks.serial[landmarks.outcome(30)[0]].astype(str)))
    if deaths < DEATHS:
        raise TooLittleHistory(
            f"Only {deaths} deaths have readings in the 30 days before; give a history with {DEATHS} or more."
        )
    rates = rates_of(landmarks, WEEKLY.step)
    sight = TrainingView(
        build_feature_matrix(landmarks.x, landmarks.model, rates), np.concatenate(reels), landmarks.model
    )
    aged = replace(landmarks, weight=landmarks.compute_decayed_weights(Recipe().half_life))
    return TrainingRows(aged, landmarks.weight, sight, rates)


def build_training_view(
    ledger: FeatureLedger,
    drive: NDArray[np.int64],
    day: NDArray[np.int64],
    model: NDArray[np.object_],
    rates: DeathRates,
    *,
    filmed: bool,
) -> TrainingView:
    """Build the view of these drives on these days."""
    x = build_feature_matrix(compute_feature_vectors(ledger, drive, day), model, rates)
    return TrainingView(x, build_films(ledger, drive, day) if filmed else _build_empty_films(len(x)), model)


def build_feature_matrix(
    x: NDArray[np.float32], model: NDArray[np.object_], rates: DeathRates
) -> NDArray[np.float32]:
    """Return the features with the family's columns appended."""
    return np.column_stack([x, family_columns(rates, model, x[:, POSITION["hours"]])])


def _build_landmark_films(
    source: HistorySource, landmarks: Landmarks, until: date, threads: int, tell: Tell
) -> NDArray[np.float16]:
    files = HistoryFiles(list(source.files), threads=threads)
    wanted = frozenset(landmarks.serial.tolist())
    reels = np.zeros((len(landmarks), STEPS, CHANNELS), dtype=np.float16)

    def keep(names: Sequence[str]) -> NDArray[np.bool_]:
        return np.array([name in wanted for name in names], dtype=bool)

    for part in files.split_into_parts():
        history = files.read(until=until, part=part, keep=keep)
        number = {str(serial): place for place, serial in enumerate(history.serials)}
        drive = np.array([number.get(str(serial), -1) for serial in landmarks.serial], dtype=np.int64)
        mine = np.flatnonzero(drive >= 0)
        reels[mine] = build_films(ledger_of(history), drive[mine], landmarks.day[mine])
        tell(f"films of {describe_files(source.files)}: {len(mine):,}")
    return reels


def _build_empty_films(count: int) -> NDArray[np.float16]:
    return np.zeros((count, 0, CHANNELS), dtype=np.float16)
