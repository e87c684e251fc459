"""Peers that a forecast must beat, by their exact definitions: three rules and two learners.

All see only rows up to the landmark, and the learners only labels known on the split day. A rule's score is
no probability; `rf5` and `lgbm_plain` say a chance to fail within 30 days.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from data.history import History
from data.refusal import Refusal
from models.evaluate.arrays import Floats, Ints, drive_day
from models.evaluate.cohort import gather
from models.evaluate.truth import Truth

if TYPE_CHECKING:
    import pyarrow as pa

FIVE: Final = (5, 187, 188, 197, 198)
"""Backblaze 2014."""
BACK: Final = (1, 7, 30)
"""Days over which `lgbm_plain` sees differences."""
WEEK: Final = 7
HORIZON: Final = 30
HEALTHY_A_FAILURE: Final = 20
"""Healthy rows a failing one that learners see; LightGBM's defaults come apart when they see them all."""


class TooFewFailures(Refusal):
    """A learner has no failure to learn from before the split."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Drives on days, as the history saw them by then. `key` is the history's (drive, day), ascending."""

    history: History
    key: Ints
    drive: Ints
    day: Ints

    @classmethod
    def of(cls, history: History, drive: Ints, day: Ints) -> Rows:
        """drive, day: (rows,) numbers of the history's drives, days since 1970-01-01."""
        key = drive_day(history.drive.astype(np.int64), history.day.astype(np.int64))
        return cls(history, key, drive, day)

    def only(self, which: Ints) -> Rows:
        """These rows alone."""
        return Rows(self.history, self.key, self.drive[which], self.day[which])

    def place(self, ago: int = 0) -> Ints:
        """(rows,) the history's row that held `ago` days before; -1 where the drive was not seen yet."""
        place = np.searchsorted(self.key, drive_day(self.drive, self.day - ago), side="right") - 1
        return np.where(place >= self.history.start[self.drive], place, -1)

    def raw(self, smart_id: int, place: Ints) -> Floats:
        """(rows,) the raw value at these places; NaN where it was not reported."""
        if smart_id not in self.history.raw:
            return np.full(len(place), np.nan)
        return np.where(place >= 0, self.history.raw[smart_id][place], np.nan)

    def five(self, ago: int = 0) -> Floats:
        """(rows, 5) raw 5, 187, 188 (low word), 197, 198."""
        place = self.place(ago)
        return np.stack([self.raw(smart_id, place) for smart_id in FIVE], axis=1)

    def everything(self) -> Floats:
        """(rows, 4 x values) every raw value and its difference over 1, 7 and 30 days."""
        place = self.place()
        now = np.stack([self.raw(smart_id, place) for smart_id in self.history.raw], axis=1)
        columns = [now]
        for ago in BACK:
            place = self.place(ago)
            columns.append(
                now - np.stack([self.raw(smart_id, place) for smart_id in self.history.raw], axis=1)
            )
        return np.concatenate(columns, axis=1)


def any5(rows: Rows) -> Floats:
    """How many of the five are above 0; a value that is not reported has no vote."""
    return np.asarray((rows.five() > 0).sum(axis=1), dtype=np.float64)


def smart_197(rows: Rows) -> Floats:
    """Raw 197: pending sectors."""
    return np.asarray(np.nan_to_num(rows.raw(197, rows.place())), dtype=np.float64)


def any5_rise(rows: Rows) -> Floats:
    """1 where any of the five rose within 7 days, else 0."""
    return np.asarray(np.any(rows.five() > rows.five(WEEK), axis=1), dtype=np.float64)


RULES: Final[Mapping[str, Callable[[Rows], Floats]]] = {
    "any5": any5,
    "smart_197": smart_197,
    "any5_rise": any5_rise,
}
_Grow = Callable[[Floats, Ints, int, int], Callable[[Floats], Floats]]
"""(x, y, seed, threads) -> a function from x to chances."""


def baseline_scores(
    names: Sequence[str],
    history: History,
    truth: Truth,
    landmarks: Ints,
    *,
    split: int,
    seed: int,
    threads: int = 1,
    tell: Callable[[str], None] = lambda _line: None,
) -> dict[str, pa.Table]:
    """Scores of each baseline for every drive seen by each landmark: serial_number, date, model, p_fail_30d.

    split: day (since 1970-01-01) after which nothing may be learned. truth: gives the learners their labels.
    Raises TooFewFailures.
    """
    first = history.day[history.start[:-1]].astype(np.int64)
    day, drive = (grid.ravel() for grid in np.meshgrid(landmarks, np.arange(history.drives), indexing="ij"))
    asked = Rows.of(history, drive, day).only(np.flatnonzero(first[drive] <= day))
    learned = None
    found = {}
    for name in names:
        tell(f"baseline {name}")
        if name in RULES:
            score = RULES[name](asked)
        else:
            learned = learned or _labelled(history, truth, split)
            score = _learn(name, *learned, asked, seed, threads)
        found[name] = _table(asked, score)
    return found


def _labelled(history: History, truth: Truth, split: int) -> tuple[Rows, Ints]:
    """Weekly rows whose fate within 30 days was known on the split day, and whether they failed."""
    days = np.arange(int(history.day.min()), split - HORIZON + 1, WEEK, dtype=np.int64)
    cohort = gather(truth, days)
    number = {str(serial): place for place, serial in enumerate(history.serials)}
    known_as = np.array([number.get(str(truth.serials[d]), -1) for d in cohort.truth_drive], dtype=np.int64)
    drive = known_as[cohort.drive]
    kept = np.flatnonzero((drive >= 0) & (cohort.label[HORIZON] >= 0))
    return Rows.of(history, drive[kept], cohort.landmark[kept]), cohort.label[HORIZON][kept]


def _learn(name: str, rows: Rows, label: Ints, asked: Rows, seed: int, threads: int) -> Floats:
    failed, healthy = np.flatnonzero(label == 1), np.flatnonzero(label == 0)
    if not len(failed) or not len(healthy):
        raise TooFewFailures(
            f"No failure is known by the split for {name}; split later or give more history."
        )
    rng = np.random.default_rng(seed)
    sampled = rng.permutation(healthy)[: len(failed) * HEALTHY_A_FAILURE]
    chosen = np.sort(np.concatenate([failed, sampled]))
    inputs, grow = LEARNERS[name]
    p = grow(inputs(rows.only(chosen)), label[chosen], seed, threads)(inputs(asked))
    # The learner saw fewer healthy rows than there are (the forest weighs both classes alike): odds come down
    # by that share.
    share = (len(failed) if name == "rf5" else len(sampled)) / len(healthy)
    return np.asarray(share * p / (share * p + 1.0 - p), dtype=np.float64)


def _forest(x: Floats, y: Ints, seed: int, threads: int) -> Callable[[Floats], Floats]:
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(
        300, min_samples_leaf=20, class_weight="balanced_subsample", random_state=seed, n_jobs=threads
    ).fit(x, y)
    return lambda rows: np.asarray(forest.predict_proba(rows), dtype=np.float64)[:, 1]


def _boosting(x: Floats, y: Ints, seed: int, threads: int) -> Callable[[Floats], Floats]:
    """LightGBM's defaults: 500 rounds at 0.05, 31 leaves."""
    import lightgbm as lgb

    settings = {
        "objective": "binary",
        "learning_rate": 0.05,
        "num_leaves": 31,
        "num_threads": threads,
        "seed": seed,
        "deterministic": True,
        "force_col_wise": True,
        "verbosity": -1,
    }
    booster = lgb.train(settings, lgb.Dataset(x, y), num_boost_round=500)
    return lambda rows: np.asarray(booster.predict(rows), dtype=np.float64)


LEARNERS: Final[Mapping[str, tuple[Callable[[Rows], Floats], _Grow]]] = {
    "rf5": (Rows.five, _forest),
    "lgbm_plain": (Rows.everything, _boosting),
}
NAMES: Final = (*RULES, *LEARNERS)


def _table(rows: Rows, score: Floats) -> pa.Table:
    import pyarrow as pa

    place = rows.history.start[rows.drive + 1] - 1
    models = np.array(rows.history.model_names, dtype=object)[rows.history.model[place]]
    return pa.table(
        {
            "serial_number": pa.array(rows.history.serials[rows.drive], pa.string()),
            "date": pa.array(rows.day.astype(np.int32), pa.int32()).cast(pa.date32()),
            "model": pa.array(models, pa.string()),
            "p_fail_30d": pa.array(score, pa.float64()),
        }
    )
