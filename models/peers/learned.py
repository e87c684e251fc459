"""Two learners: a forest on the raw five counters, and LightGBM's defaults on every raw value and its changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.evaluate.arrays import Floats, Ints
from models.evaluate.cohort import gather
from models.evaluate.truth import Truth
from models.peers.rows import Rows
from models.peers.verdict import NotComputable, Verdict

BACK: Final = (1, 7, 30)
"""Days over which `lgbm_plain` sees differences."""
HORIZON: Final = 30
WEEK: Final = 7
HEALTHY_A_FAILURE: Final = 20
"""Healthy rows a failing one that learners see; LightGBM's defaults come apart when they see them all."""


@dataclass(frozen=True, slots=True)
class Known:
    """Weekly rows whose fate was known on the split day: days to death or, for the living, days seen alive."""

    rows: Rows
    died: np.ndarray
    left: Ints


@dataclass(frozen=True, slots=True)
class Lesson:
    """What learners learn from: a history, its drives' fates, and the split day that hides the later ones."""

    asked: Rows
    truth: Truth
    split: int
    seed: int
    threads: int

    def known(self, horizon: int) -> Known:
        """Rows at landmarks a horizon before the split or earlier, left out where the fate stays unknown."""
        history = self.asked.history
        days = np.arange(int(history.day.min()), self.split - horizon + 1, WEEK, dtype=np.int64)
        cohort = gather(self.truth, days)
        number = {str(serial): place for place, serial in enumerate(history.serials)}
        known_as = np.array(
            [number.get(str(self.truth.serials[d]), -1) for d in cohort.truth_drive], dtype=np.int64
        )
        drive = known_as[cohort.drive] if len(cohort.drive) else cohort.drive
        death, last = cohort.death[cohort.drive], cohort.last[cohort.drive]
        dies = death <= cohort.landmark + horizon
        kept = np.flatnonzero((drive >= 0) & (dies | (last >= cohort.landmark + horizon)))
        rows = Rows.of(history, drive[kept], cohort.landmark[kept], self.asked.columns)
        left = np.where(dies, death, last)[kept] - cohort.landmark[kept]
        return Known(rows, dies[kept], left)


def sampled(
    failing: np.ndarray, rng: np.random.Generator, each: int, most: int | None = None
) -> tuple[Ints, float]:
    """Every failing row and `each` healthy ones to it, ascending, and the share of healthy rows that are in.

    most: healthy rows at most. Raises NotComputable.
    """
    failed, healthy = np.flatnonzero(failing), np.flatnonzero(~failing)
    if not len(failed) or not len(healthy):
        raise NotComputable("no failure is known by the split; split later or give more history")
    drawn = rng.permutation(healthy)[: len(failed) * each][:most]
    return np.sort(np.concatenate([failed, drawn])), len(drawn) / len(healthy)


def rf5(lesson: Lesson) -> Verdict:
    """RandomForest(300, min_leaf 20, balanced_subsample) on the raw five."""
    return _learn("rf5", Rows.five, _forest, lesson)


def lgbm_plain(lesson: Lesson) -> Verdict:
    """LightGBM's defaults (500 x 0.05, 31 leaves) on every raw value and its 1, 7 and 30-day difference."""
    return _learn("lgbm_plain", everything, _boosting, lesson)


LEARNERS: Final[Mapping[str, Callable[[Lesson], Verdict]]] = {"rf5": rf5, "lgbm_plain": lgbm_plain}


def everything(rows: Rows) -> Floats:
    """(rows, 4 x values) every raw value that the history keeps and its differences over 1, 7, 30 days."""

    def values(ago: int) -> Floats:
        place = rows.place(ago)
        return np.stack([rows.raw(smart_id, place) for smart_id in rows.history.raw], axis=1)

    now = values(0)
    return np.concatenate([now, *(now - values(ago) for ago in BACK)], axis=1)


_Grow = Callable[[Floats, Ints, int, int], Callable[[Floats], Floats]]
"""(x, y, seed, threads) -> a function from x to chances."""


def _learn(name: str, inputs: Callable[[Rows], Floats], grow: _Grow, lesson: Lesson) -> Verdict:
    known = lesson.known(HORIZON)
    failing = known.died
    chosen, kept = sampled(failing, np.random.default_rng(lesson.seed), HEALTHY_A_FAILURE)
    label = failing[chosen].astype(np.int64)
    p = grow(inputs(known.rows.only(chosen)), label, lesson.seed, lesson.threads)(inputs(lesson.asked))
    # The learner saw fewer healthy rows than there are (the forest weighs both classes alike): odds come down
    # by that share.
    healthy = int((~failing).sum())
    share = int(failing.sum()) / healthy if name == "rf5" else kept
    return Verdict(np.asarray(share * p / (share * p + 1.0 - p), dtype=np.float64))


def _forest(x: Floats, y: Ints, seed: int, threads: int) -> Callable[[Floats], Floats]:
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(
        300, min_samples_leaf=20, class_weight="balanced_subsample", random_state=seed, n_jobs=threads
    ).fit(x, y)
    return lambda rows: np.asarray(forest.predict_proba(rows), dtype=np.float64)[:, 1]


def _boosting(x: Floats, y: Ints, seed: int, threads: int) -> Callable[[Floats], Floats]:
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
