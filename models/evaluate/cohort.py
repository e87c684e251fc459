"""The drives and landmarks that are judged: rows (a drive at risk at a landmark), labels, failures and healthy windows.

The protocol (docs/explanation/evaluation.md): a drive is at risk at L when it is in service, its last day is after
L and, in a daily set, it has a reading in [L-6, L]. The label y is 1 if it fails in (L, L+h], 0 if it is observed
without failure to L+h or beyond, else censored. Rows of a horizon have a known y, and L+h lies inside the data. A
failure has a row with y = 1 at h = 30. A healthy window is a drive and 30-day block with rows of y = 0 and none of
y = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from predrain.models.evaluate.arrays import DAY_BITS, Bools, Floats, Ints, drive_day
from predrain.models.evaluate.drive_outcomes import FailureTruth
from predrain.models.evaluate.score_rows import LIFE, PROBABILITIES, Scores

HORIZONS = (7, 14, 30)
BLOCK_DAYS = 30
CENSORED = -1
STALE_DAYS = 6
ALARMS = ("warning", "bad")
"""Status values that raise an alarm, the milder one first."""


@dataclass(frozen=True, slots=True)
class Cohort:
    """Rows (m) sorted by drive and landmark; `drive` numbers the drives that have a row, 0..drives-1."""

    truth_drive: Ints
    """(drives,) number of each drive in the truth."""
    drive: Ints
    landmark: Ints
    end: int
    death: Ints
    """(drives,) day of failure or NEVER."""
    last: Ints
    """(drives,) last day in service."""
    label: dict[int, Ints]
    """Horizon -> (m,) 1, 0 or CENSORED."""
    symptomatic: Bools
    """(m,) any of the five counters > 0 on the last reading up to the landmark."""
    hours: Floats
    """(m,) power-on hours at the landmark, carried forward from the last reading."""

    @property
    def drives(self) -> int:
        """Return the number of drives that are ever at risk."""
        return len(self.truth_drive)

    def has_known_label(self, horizon: int) -> Bools:
        """Find the rows of a horizon: the label is known, and the whole horizon is inside the data. (m,) booleans."""
        inside: Bools = self.landmark + horizon <= self.end
        known: Bools = (self.label[horizon] != CENSORED) & inside
        return known


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Rows grouped into failures or windows: group g owns `rows[start[g]:start[g + 1]]`."""

    rows: Ints
    start: Ints
    drive: Ints
    """(groups,) drive of each group."""

    def __len__(self) -> int:
        return len(self.drive)

    def compute_group_maxima(self, score: Floats) -> Floats:
        """Return the largest score over each group's rows: (groups,)."""
        return np.maximum.reduceat(score[self.rows], self.start[:-1]) if len(self) else np.empty(0)


@dataclass(frozen=True, slots=True)
class AlignedScores:
    """A forecast for the cohort's rows. A row that the file lacks has NaN in every column.

    The column `alarm` exists if the file has a status: 0 for none, 1 for warning, 2 for bad.
    """

    columns: dict[str, Floats]
    missing: int
    """Number of expected rows that the file lacks or leaves empty."""
    ignored: int
    """Number of rows of the file for other drives or days."""

    def score(self, name: str) -> Floats:
        """Return a column to rank by. A missing row ranks below every other."""
        column = self.columns[name]
        return np.where(np.isnan(column), -np.inf, column)

    def probability(self, name: str) -> Floats:
        """Return a column as a probability. A missing row counts as 0."""
        return np.nan_to_num(self.columns[name], nan=0.0)


def gather_cohort(truth: FailureTruth, landmarks: Ints) -> Cohort:
    """Gather the rows at risk at these landmarks, with labels. Landmarks on or after the last day of data have no
    rows."""
    landmarks = np.unique(landmarks[landmarks < truth.end])
    everyone = np.flatnonzero(~truth.left_out)
    rows: list[Ints] = []
    for day in landmarks:
        at_risk = everyone[(truth.first[everyone] <= day) & (truth.last[everyone] > day)]
        place = truth.find_latest_readings(at_risk, np.full(len(at_risk), day))
        fresh = place >= 0
        fresh[fresh] = truth.reading_key[place[fresh]] >= drive_day(at_risk[fresh], int(day) - STALE_DAYS)
        at_risk = at_risk[~truth.daily[at_risk] | fresh]
        rows.append(drive_day(at_risk, int(day)))
    key = np.sort(np.concatenate([np.empty(0, np.int64), *rows]))
    in_truth, landmark = key >> DAY_BITS, key & (2**DAY_BITS - 1)
    truth_drive, drive = np.unique(in_truth, return_inverse=True)
    death, last = truth.death[truth_drive], truth.last[truth_drive]
    place = truth.find_latest_readings(in_truth, landmark)
    told = place >= 0
    age = np.full(len(place), np.nan)
    age[told] = truth.hours[place[told]] + 24.0 * (
        drive_day(in_truth, landmark)[told] - truth.reading_key[place[told]]
    )
    symptomatic = np.zeros(len(place), dtype=bool)
    symptomatic[told] = truth.symptomatic[place[told]]
    label = {horizon: _label_rows(landmark, death[drive], last[drive], horizon) for horizon in HORIZONS}
    return Cohort(truth_drive, drive, landmark, truth.end, death, last, label, symptomatic, age)


def _label_rows(landmark: Ints, death: Ints, last: Ints, horizon: int) -> Ints:
    dies = (death > landmark) & (death <= landmark + horizon)
    lives = last >= landmark + horizon
    return np.where(dies, 1, np.where(lives, 0, CENSORED)).astype(np.int64)


def group_failures(cohort: Cohort) -> RowGroups:
    """Group each failure's landmarks in [death-30, death-1]."""
    rows = np.flatnonzero(cohort.label[30] == 1)
    return _group_rows(rows, cohort.drive[rows], cohort.drive[rows])


def healthy_windows(cohort: Cohort) -> RowGroups:
    """Group each drive and 30-day block (from the first landmark) with rows of y = 0 and none of y = 1."""
    if not len(cohort.landmark):
        return _group_rows(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
    block = (cohort.landmark - cohort.landmark.min()) // BLOCK_DAYS
    window = cohort.drive * (int(block.max()) + 1) + block
    sick = np.zeros(int(window.max()) + 1, dtype=bool)
    sick[window[cohort.label[30] == 1]] = True
    rows = np.flatnonzero((cohort.label[30] == 0) & ~sick[window])
    return _group_rows(rows, window[rows], cohort.drive[rows])


def _group_rows(rows: Ints, group: Ints, drive: Ints) -> RowGroups:
    first = np.flatnonzero(np.diff(group, prepend=-1))
    return RowGroups(rows, np.append(first, len(rows)), drive[first])


def align_scores(cohort: Cohort, truth: FailureTruth, scores: Scores) -> AlignedScores:
    """Align a forecast with the cohort's rows."""
    number = {str(truth.serials[drive]): place for place, drive in enumerate(cohort.truth_drive)}
    drive = np.array([number.get(str(serial), -1) for serial in scores.serials], dtype=np.int64)
    expected = drive_day(cohort.drive, cohort.landmark)
    offered = drive_day(drive, scores.day)
    place = np.searchsorted(expected, offered)
    found = (drive >= 0) & (place < len(expected))
    found[found] = expected[place[found]] == offered[found]
    columns = {}
    for name in (*PROBABILITIES, *LIFE):
        if name in scores.numbers:
            columns[name] = np.full(len(expected), np.nan)
            columns[name][place[found]] = scores.numbers[name][found]
    if "status" in scores.words:
        level = np.select([scores.words["status"] == word for word in ALARMS], [1.0, 2.0], 0.0)
        columns["alarm"] = np.full(len(expected), np.nan)
        columns["alarm"][place[found]] = level[found]
    missing = int(np.isnan(columns["p_fail_30d"]).sum())
    return AlignedScores(columns, missing, int(np.count_nonzero(~found)))
