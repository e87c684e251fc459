"""The recipe behind Ceph's newer predictor: six-day statistics of Seagate's attributes, a forest of 128 trees.

Source: aicoe-aiops/ceph_drive_failure. The statistics are mean, standard deviation (ddof 1) and their ratio (0
where undefined) of raw and normalised values. RobustScaler and RandomForest(128, balanced) follow; bad fails within
14 days, warning within 42 days. Here the recipe learns from weekly rows, as the other peers do. It ranks best with
100 good rows for each that is not good. With more good rows it alarms less often; its own alarm is that of this
sample.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from predrain.models.evaluate.arrays import Floats
from predrain.models.lab.peers.drive_days import DriveDayRows
from predrain.models.lab.peers.learned_peers import HORIZON, TrainingHistory, sample_healthy_rows
from predrain.models.lab.peers.peer_answer import NotComputable, PeerVerdict

SEAGATE: Final = (1, 5, 7, 10, 187, 188, 190, 193, 197, 198, 241)
DAYS: Final = 6
BAD: Final = 14
WARNING: Final = 42
GOOD_A_FAILURE: Final = 100
GOOD_AT_MOST: Final = 150_000
"""Largest number of good rows: trees without a limit on depth take minutes for more."""
PIECE: Final = 200_000
"""Number of rows judged at once, because six days of their values are in memory."""
WORDS: Final = np.array(["good", "warning", "bad"], dtype=object)


def redhat_recipe(lesson: TrainingHistory) -> PeerVerdict:
    """Score each drive for 30 days in per cent: the share of bad, and of warning the part of its 28 days that is
    inside.

    The classes are balanced, so the score is no probability. Drives that are not Seagate's have no score. Raises
    NotComputable.
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import RobustScaler

    asked = lesson.asked
    raw = [n for n in SEAGATE if asked.has_raw_values(n)]
    normalised = [n for n in SEAGATE if n in asked.columns.normalised]
    mine = np.flatnonzero(_is_seagate(asked))
    if not raw or not len(mine):
        raise NotComputable("no drive here is Seagate's, and the recipe knows no other")
    known = lesson.select_known_rows(WARNING)
    own = np.flatnonzero(_is_seagate(known.rows))
    rows, died, left = known.rows.select_rows(own), known.died[own], known.left[own]
    grade = np.where(died & (left < BAD), 2, np.where(died & (left < WARNING), 1, 0))
    chosen, _ = sample_healthy_rows(
        grade > 0, np.random.default_rng(lesson.seed), GOOD_A_FAILURE, GOOD_AT_MOST
    )
    forest = make_pipeline(
        RobustScaler(),
        RandomForestClassifier(128, class_weight="balanced", random_state=lesson.seed, n_jobs=lesson.threads),
    ).fit(compute_window_statistics(rows.select_rows(chosen), raw, normalised), grade[chosen])
    votes = np.asarray(
        forest.predict_proba(compute_window_statistics(asked.select_rows(mine), raw, normalised)),
        dtype=np.float64,
    )
    share = np.zeros((len(mine), len(WORDS)))
    share[:, forest.classes_] = votes
    score, status = np.full(len(asked.drive), np.nan), np.full(len(asked.drive), "unknown", dtype=object)
    inside = (HORIZON - BAD) / (WARNING - BAD)
    score[mine] = 100.0 * (share[:, 2] + inside * share[:, 1])
    status[mine] = WORDS[share.argmax(axis=1)]
    return PeerVerdict(score, status, _describe_gaps(raw, normalised, len(mine) / len(asked.drive)))


def compute_window_statistics(rows: DriveDayRows, raw: list[int], normalised: list[int]) -> Floats:
    """Return mean, standard deviation and their ratio over six days: (rows, 3 x values).

    A value that is not reported counts as 0.
    """
    days = np.stack([_read_values(rows, ago, raw, normalised) for ago in range(DAYS)])
    seen = np.maximum((~np.isnan(days)).sum(axis=0), 1)
    mean = np.nansum(days, axis=0) / seen
    spread = np.sqrt(np.nansum((days - mean) ** 2, axis=0) / np.maximum(seen - 1, 1))
    ratio = np.divide(spread, mean, out=np.zeros_like(mean), where=mean != 0)
    return np.concatenate([mean, spread, ratio], axis=1)


def _read_values(rows: DriveDayRows, ago: int, raw: list[int], normalised: list[int]) -> Floats:
    place = rows.find_history_rows(ago)
    return np.stack(
        [
            *(rows.get_raw_values(n, place) for n in raw),
            *(rows.get_normalised_values(n, place) for n in normalised),
        ],
        axis=1,
    )


def _is_seagate(rows: DriveDayRows) -> np.ndarray:
    return np.char.startswith(rows.get_models().astype(str), "ST")


def _describe_gaps(raw: list[int], normalised: list[int], share: float) -> str:
    lacking = [str(n) for n in SEAGATE if n not in raw]
    lacking += [f"normalised {n}" for n in SEAGATE if n not in normalised] if normalised else []
    words = ["the history lacks " + ", ".join([*lacking, *([] if normalised else ["all normalised values"])])]
    words += ["capacity is left out"]
    if share < 1:
        words.append(f"it knows Seagate's drives only, {share:.0%} of these rows")
    return "; ".join(words)
