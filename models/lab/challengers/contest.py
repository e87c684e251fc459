"""Scores of challengers for every drive and landmark of a history, from the data known on the day of the split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.history import EPOCH, History
from predrain.data.refusal import Refusal
from predrain.features.drive_history_rows import ledger_of
from predrain.features.feature_vectors import rows_at
from predrain.models.forecast.drive_family import DeathRates
from predrain.models.forecast.history_scores import FRESH
from predrain.models.lab.challengers.blend import Blend, fit_blend
from predrain.models.lab.challengers.boosting import hist_boosting, train_shipped_recipe
from predrain.models.lab.challengers.cross_fitting import CrossFitted, Learner, cross_fit_challenger
from predrain.models.lab.challengers.logistic_hazard import logistic_hazard
from predrain.models.lab.challengers.random_forest import train_forest
from predrain.models.lab.challengers.sequence_model import require_jax, train_sequence_model
from predrain.models.lab.challengers.training_rows import (
    Tell,
    TrainingRows,
    TrainingView,
    build_training_view,
    lessons_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

LEARNERS: Final[Mapping[str, Learner]] = {
    "hist_boosting": hist_boosting,
    "forest": train_forest,
    "logistic_hazard": logistic_hazard,
    "sequence": train_sequence_model,
}
BLEND: Final = "blend"
NAMES: Final = (*LEARNERS, BLEND)
SHIPPED: Final = "shipped"
DRIVES: Final = 2_000
"""Drives that are processed at a time; this number needs little memory."""


class UnknownChallenger(Refusal):
    """There is no challenger of that name."""


def challenger_scores(
    names: Sequence[str],
    learned_from: Sequence[Path],
    *,
    until: date,
    history: History,
    landmarks: NDArray[np.int64],
    seed: int,
    threads: int,
    tell: Tell = lambda _: None,
) -> dict[str, pa.Table]:
    """Learn from the data known on `until`, then forecast each drive that reported in the week before each landmark.

    Return a table for each name: serial_number, date, model, p_fail_7d, p_fail_14d, p_fail_30d. landmarks: days
    since 1970-01-01. `blend` combines the shipped recipe with the other named challengers, or with all that need no
    extra if none is named. Raises UnknownChallenger, NoNeuralNetworks, UnreadableHistory, TooLittleHistory.
    """
    import pyarrow as pa

    members = members_of(names)
    filmed = "sequence" in members
    lessons = lessons_of(learned_from, until=until, filmed=filmed, seed=seed, threads=threads, tell=tell)
    learned = {
        name: cross_fit_challenger(name, learner, lessons, seed=seed, threads=threads, tell=tell)
        for name, learner in members.items()
    }
    blend = _fit_blend(learned, lessons, tell) if BLEND in names else None
    tables: dict[str, list[pa.Table]] = {name: [] for name in names}
    for first in range(0, max(history.drives, 1), DRIVES):
        part = _select_drives(history, first, min(first + DRIVES, history.drives))
        drive, day, sight = _build_landmark_view(part, landmarks, lessons.rates, filmed)
        for name, p in _forecast_challengers(learned, blend, sight).items():
            if name in tables:
                tables[name].append(_build_score_table(part.serials[drive], day, sight.model, p))
        tell(f"challengers: {first + part.drives:,} of {history.drives:,} drives")
    return {name: pa.concat_tables(parts) for name, parts in tables.items()}


def members_of(names: Sequence[str]) -> dict[str, Learner]:
    """Return the learners that have to be trained for these names. Raises UnknownChallenger, NoNeuralNetworks."""
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        raise UnknownChallenger(f"There is no challenger {', '.join(unknown)}; known are {', '.join(NAMES)}.")
    named = {name: learner for name, learner in LEARNERS.items() if name in names}
    if "sequence" in named:
        require_jax()
    if BLEND not in names:
        return named
    return {SHIPPED: train_shipped_recipe} | (
        named or {name: LEARNERS[name] for name in LEARNERS if name != "sequence"}
    )


def _fit_blend(learned: Mapping[str, CrossFitted], lessons: TrainingRows, tell: Tell) -> Blend:
    blend = fit_blend([each.unseen for each in learned.values()], lessons.landmarks)
    shares = (f"{name} {share:.2f}" for name, share in zip(learned, blend.weights, strict=True))
    tell(f"blend: {', '.join(shares)}")
    return blend


def _forecast_challengers(
    learned: Mapping[str, CrossFitted], blend: Blend | None, sight: TrainingView
) -> dict[str, NDArray[np.float64]]:
    if not len(sight):
        return dict.fromkeys((*learned, BLEND), np.empty((0, 3)))
    found = {name: challenger(sight) for name, challenger in learned.items()}
    return found if blend is None else found | {BLEND: blend(list(found.values()))}


def _select_drives(history: History, first: int, last: int) -> History:
    """Return the history of drives first to last - 1."""
    start = history.start[first : last + 1]
    rows = slice(int(start[0]), int(start[-1]))
    return replace(
        history,
        serials=history.serials[first:last],
        start=start - start[0],
        day=history.day[rows],
        model=history.model[rows],
        raw={n: values[rows] for n, values in history.raw.items()},
    )


def _build_landmark_view(
    history: History, landmarks: NDArray[np.int64], rates: DeathRates, filmed: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], TrainingView]:
    """Return drive, day and view of each drive that reported in the week before a landmark."""
    ledger = ledger_of(history)
    drive = np.repeat(np.arange(history.drives, dtype=np.int64), len(landmarks))
    day = np.tile(landmarks, history.drives)
    row = rows_at(ledger, drive, day)
    fresh = row >= 0
    fresh[fresh] = day[fresh] - history.day[row[fresh]] <= FRESH
    drive, day = drive[fresh], day[fresh]
    model = np.array(history.model_names, dtype=object)[history.model[row[fresh]]]
    return drive, day, build_training_view(ledger, drive, day, model, rates, filmed=filmed)


def _build_score_table(
    serials: NDArray[np.object_],
    day: NDArray[np.int64],
    model: NDArray[np.object_],
    p: NDArray[np.float64],
) -> pa.Table:
    import pyarrow as pa

    dates = (np.datetime64(EPOCH) + day.astype("timedelta64[D]")).astype("datetime64[D]")
    return pa.table(
        {
            "serial_number": pa.array([str(s) for s in serials], pa.string()),
            "date": pa.array(dates, pa.date32()),
            "model": pa.array([str(m) for m in model], pa.string()),
            **{f"p_fail_{days}d": pa.array(p[:, place]) for place, days in enumerate((7, 14, 30))},
        }
    )
