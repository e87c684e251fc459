"""Learners: a forest on the raw five counters, and a small LightGBM on every raw value and its changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from predrain.models.evaluate.arrays import Floats, Ints
from predrain.models.evaluate.cohort import gather_cohort
from predrain.models.evaluate.drive_outcomes import FailureTruth
from predrain.models.lab.peers.drive_days import DriveDayRows
from predrain.models.lab.peers.peer_answer import NotComputable, PeerVerdict

if TYPE_CHECKING:
    import lightgbm as lgb

Floats32 = NDArray[np.float32]

BACK: Final = (1, 7, 30)
"""Days over which the boosters see differences."""
HORIZON: Final = 30
WEEK: Final = 7
HEALTHY_A_FAILURE: Final = 20
"""Number of healthy rows in a training for each failing one."""
TREES: Final = 150
LEAVES: Final = 8
BOOSTERS: Final = 3
"""Number of boosters whose probabilities are averaged. Each has its own seed and draws its own healthy rows."""
DAYS_BETWEEN_ROWS: Final = 3
"""Days between the landmarks from which the boosters learn."""
LEAF_HESSIAN: Final = 0.001
"""Least sum of hessians in a leaf: LightGBM's default."""
LEAF_HESSIAN_OF_ALL_ROWS: Final = 1.0
"""Least sum of hessians in a leaf if every healthy row is used.

20 rows of a sample add up to about 1, 20 of all rows to less than 0.05. With LightGBM's default the first trees
would make leaves of few rows, with steps that later trees do not undo.
"""


@dataclass(frozen=True, slots=True)
class LearnedRows:
    """Rows whose outcome was known on the split day, with days to death or, for the living, days seen alive."""

    rows: DriveDayRows
    died: np.ndarray
    left: Ints


@dataclass(frozen=True, slots=True)
class TrainingHistory:
    """The data of learners: a history, its drives' outcomes, and the split day, after which outcomes are hidden."""

    asked: DriveDayRows
    truth: FailureTruth
    split: int
    seed: int
    threads: int

    def select_known_rows(self, horizon: int, every: int = WEEK) -> LearnedRows:
        """Select rows at landmarks a horizon before the split or earlier, without those of unknown outcome.

        every: days between the landmarks.
        """
        history = self.asked.history
        days = np.arange(int(history.day.min()), self.split - horizon + 1, every, dtype=np.int64)
        cohort = gather_cohort(self.truth, days)
        number = {str(serial): place for place, serial in enumerate(history.serials)}
        known_as = np.array(
            [number.get(str(self.truth.serials[d]), -1) for d in cohort.truth_drive], dtype=np.int64
        )
        drive = known_as[cohort.drive] if len(cohort.drive) else cohort.drive
        death, last = cohort.death[cohort.drive], cohort.last[cohort.drive]
        dies = death <= cohort.landmark + horizon
        kept = np.flatnonzero((drive >= 0) & (dies | (last >= cohort.landmark + horizon)))
        rows = DriveDayRows.from_history(history, drive[kept], cohort.landmark[kept], self.asked.columns)
        left = np.where(dies, death, last)[kept] - cohort.landmark[kept]
        return LearnedRows(rows, dies[kept], left)


def sample_healthy_rows(
    failing: np.ndarray, rng: np.random.Generator, each: int | None, most: int | None = None
) -> tuple[Ints, float]:
    """Return every failing row and `each` healthy ones to it, ascending, and the share of healthy rows among them.

    each: None takes every healthy row. most: largest number of healthy rows. Raises NotComputable.
    """
    failed, healthy = np.flatnonzero(failing), np.flatnonzero(~failing)
    if not len(failed) or not len(healthy):
        raise NotComputable("no failure is known by the split; split later or give more history")
    wanted = len(healthy) if each is None else len(failed) * each
    drawn = rng.permutation(healthy)[:wanted][:most]
    return np.sort(np.concatenate([failed, drawn])), len(drawn) / len(healthy)


def score_rf5(lesson: TrainingHistory) -> PeerVerdict:
    """Train RandomForest(300, min_leaf 20, balanced_subsample) on the raw five."""
    from sklearn.ensemble import RandomForestClassifier

    known = lesson.select_known_rows(HORIZON)
    chosen, _ = sample_healthy_rows(known.died, np.random.default_rng(lesson.seed), HEALTHY_A_FAILURE)
    forest = RandomForestClassifier(
        300,
        min_samples_leaf=20,
        class_weight="balanced_subsample",
        random_state=lesson.seed,
        n_jobs=lesson.threads,
    ).fit(known.rows.select_rows(chosen).get_five_counters(), known.died[chosen].astype(np.int64))
    p = np.asarray(forest.predict_proba(lesson.asked.get_five_counters()), dtype=np.float64)[:, 1]
    # The forest gives both classes the same weight, so its odds are those of equal numbers.
    return PeerVerdict(lower_odds(p, int(known.died.sum()) / int((~known.died).sum())))


def lgbm_plain(lesson: TrainingHistory) -> PeerVerdict:
    """Train LightGBM (150 trees of 8 leaves) on every raw value and its changes, 20 healthy rows for each failing
    one."""
    return PeerVerdict(average_boosters(lesson, HEALTHY_A_FAILURE, LEAF_HESSIAN))


def lgbm_all_rows(lesson: TrainingHistory) -> PeerVerdict:
    """Train the same on every healthy row, with a larger least sum of hessians in a leaf."""
    return PeerVerdict(average_boosters(lesson, None, LEAF_HESSIAN_OF_ALL_ROWS))


LEARNERS: Final[Mapping[str, Callable[[TrainingHistory], PeerVerdict]]] = {
    "rf5": score_rf5,
    "lgbm_plain": lgbm_plain,
    "lgbm_all_rows": lgbm_all_rows,
}


def build_raw_features(rows: DriveDayRows) -> Floats32:
    """Return every raw value of the history and its differences over 1, 7, 30 days: (rows, 4 x values)."""
    values = tuple(rows.history.raw)
    places = [rows.find_history_rows(ago) for ago in (0, *BACK)]
    found = np.empty((len(rows.drive), len(places), len(values)), dtype=np.float32)
    for column, smart_id in enumerate(values):
        now = rows.get_raw_values(smart_id, places[0])
        found[:, 0, column] = now
        for number, place in enumerate(places[1:], start=1):
            found[:, number, column] = now - rows.get_raw_values(smart_id, place)
    return found.reshape(len(rows.drive), -1)


def average_boosters(lesson: TrainingHistory, healthy_a_failure: int | None, leaf_hessian: float) -> Floats:
    """Return the mean probability of the boosters, on the true odds: (rows asked,). Raises NotComputable."""
    known = lesson.select_known_rows(HORIZON, DAYS_BETWEEN_ROWS)
    asked = build_raw_features(lesson.asked)
    total = np.zeros(len(asked))
    for number in range(BOOSTERS):
        seed = lesson.seed * BOOSTERS + number
        chosen, kept = sample_healthy_rows(known.died, np.random.default_rng(seed), healthy_a_failure)
        rows = build_raw_features(known.rows.select_rows(chosen))
        booster = grow_booster(rows, known.died[chosen], seed, lesson.threads, leaf_hessian=leaf_hessian)
        # The booster was trained on only this share of the healthy rows.
        total += lower_odds(np.asarray(booster.predict(asked, num_threads=lesson.threads)), kept)
    return total / BOOSTERS


def grow_booster(
    x: Floats32, died: np.ndarray, seed: int, threads: int, *, leaf_hessian: float = LEAF_HESSIAN
) -> lgb.Booster:
    """Grow 150 trees of 8 leaves with a learning rate of 0.05. All else is LightGBM's default."""
    import lightgbm as lgb

    settings = {
        "objective": "binary",
        "learning_rate": 0.05,
        "num_leaves": LEAVES,
        "min_sum_hessian_in_leaf": leaf_hessian,
        "num_threads": threads,
        "seed": seed,
        "deterministic": True,
        "force_col_wise": True,
        "verbosity": -1,
    }
    return lgb.train(settings, lgb.Dataset(x, died.astype(np.float32)), num_boost_round=TREES)


def lower_odds(p: Floats, share: float) -> Floats:
    """Return probabilities whose odds are multiplied by a share."""
    return np.asarray(share * p / (share * p + 1.0 - p), dtype=np.float64)
