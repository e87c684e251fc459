"""Scores of challengers for every drive and landmark of a history, from what was known on the day of the split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from data.history import EPOCH, History
from data.refusal import Refusal
from features.ledger import Ledger, ledger_of
from features.vector import rows_at
from models.challengers.blend import Blend, blended
from models.challengers.boosting import hist_boosting, shipped
from models.challengers.crossed import Crossed, Learner, crossed
from models.challengers.forest import forest
from models.challengers.lessons import Lessons, Sight, Tell, lessons_of, seen
from models.challengers.logistic import logistic_hazard
from models.challengers.sequence import sequence
from models.score import FRESH

if TYPE_CHECKING:
    import pyarrow as pa

LEARNERS: Final[Mapping[str, Learner]] = {
    "hist_boosting": hist_boosting,
    "forest": forest,
    "logistic_hazard": logistic_hazard,
    "sequence": sequence,
}
BLEND: Final = "blend"
NAMES: Final = (*LEARNERS, BLEND)
SHIPPED: Final = "shipped"
PIECE: Final = 50_000
"""Pairs of a drive and a landmark that are looked at at a time."""


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
    """Learn what was known on `until`, then forecast each drive that reported in the week before each landmark.

    Of each name a table: serial_number, date, model, p_fail_7d, p_fail_14d, p_fail_30d. landmarks: days since
    1970-01-01. `blend` is the shipped recipe with the other challengers that are named (with none: all that need no
    extra). Raises UnknownChallenger, NoNeuralNetworks, UnreadableHistory.
    """
    members = members_of(names)
    filmed = "sequence" in members
    lessons = lessons_of(learned_from, until=until, filmed=filmed, seed=seed, threads=threads, tell=tell)
    learned = {
        name: crossed(name, learner, lessons, seed=seed, threads=threads, tell=tell)
        for name, learner in members.items()
    }
    blend = _blend(learned, lessons, tell) if BLEND in names else None
    ledger = ledger_of(history)
    drive, day, row = _asked(history, ledger, landmarks)
    model = np.array(history.model_names, dtype=object)[history.model[row]]
    chances = {name: np.empty((len(drive), 3)) for name in names}
    for begin in range(0, len(drive), PIECE):
        piece = slice(begin, begin + PIECE)
        sight = seen(ledger, drive[piece], day[piece], model[piece], lessons.rates, filmed=filmed)
        for name, p in _forecast(learned, blend, sight).items():
            if name in chances:
                chances[name][piece] = p
        tell(f"challengers: {min(piece.stop, len(drive)):,} of {len(drive):,} forecasts")
    return {name: _table(history.serials[drive], day, model, p) for name, p in chances.items()}


def members_of(names: Sequence[str]) -> dict[str, Learner]:
    """Who has to learn so that these can be asked. Raises UnknownChallenger."""
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        raise UnknownChallenger(f"There is no challenger {', '.join(unknown)}; known are {', '.join(NAMES)}.")
    named = {name: learner for name, learner in LEARNERS.items() if name in names}
    if BLEND not in names:
        return named
    return {SHIPPED: shipped} | (named or {name: LEARNERS[name] for name in LEARNERS if name != "sequence"})


def _blend(learned: Mapping[str, Crossed], lessons: Lessons, tell: Tell) -> Blend:
    blend = blended([each.unseen for each in learned.values()], lessons.landmarks)
    shares = (f"{name} {share:.2f}" for name, share in zip(learned, blend.weights, strict=True))
    tell(f"blend: {', '.join(shares)}")
    return blend


def _forecast(
    learned: Mapping[str, Crossed], blend: Blend | None, sight: Sight
) -> dict[str, NDArray[np.float64]]:
    found = {name: challenger(sight) for name, challenger in learned.items()}
    return found if blend is None else found | {BLEND: blend(list(found.values()))}


def _asked(
    history: History, ledger: Ledger, landmarks: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Drive, day and row that holds, of each drive that reported in the week before a landmark."""
    drive = np.repeat(np.arange(history.drives, dtype=np.int64), len(landmarks))
    day = np.tile(landmarks, history.drives)
    row = rows_at(ledger, drive, day)
    fresh = row >= 0
    fresh[fresh] = day[fresh] - history.day[row[fresh]] <= FRESH
    return drive[fresh], day[fresh], row[fresh]


def _table(
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
