"""Rules on the five counters that Backblaze watches. A null value never raises an alarm.

Sources: Backblaze 2014 (`score_any5`, `score_any4`), the AICoE notebook's strongest single counter (`smart_197`),
netdata issue 7383 (`any5_rise`). `level` and `rise` are simple sums of logarithms, the first idea that one would
try. They need no training and apply to drives of every maker.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from predrain.models.evaluate.arrays import Floats
from predrain.models.lab.peers.drive_days import FIVE, DriveDayRows
from predrain.models.lab.peers.peer_answer import PeerVerdict, status_of

WEEK: Final = 7
SECTORS: Final = (5, 197, 198)
"""Reallocated, pending and uncorrectable sectors: the counters that `level` and `rise` read."""
FOUR: Final = tuple(place for place, smart_id in enumerate(FIVE) if smart_id != 188)


def score_any5(rows: DriveDayRows) -> PeerVerdict:
    """Count how many of raw 5, 187, 188, 197, 198 are above 0; alarm from one on."""
    return _to_counter_verdict((rows.get_five_counters() > 0).sum(axis=1))


def score_any4(rows: DriveDayRows) -> PeerVerdict:
    """Count how many of raw 5, 187, 197, 198 are above 0; alarm from one on."""
    return _to_counter_verdict((rows.get_five_counters()[:, FOUR] > 0).sum(axis=1))


def smart_197(rows: DriveDayRows) -> PeerVerdict:
    """Return raw 197, pending sectors; alarm above 0."""
    return _to_counter_verdict(np.nan_to_num(rows.get_raw_values(197, rows.find_history_rows())))


def any5_rise(rows: DriveDayRows) -> PeerVerdict:
    """Return 1 if any of the five rose within 7 days, else 0; alarm at 1."""
    return _to_counter_verdict(np.any(rows.get_five_counters() > rows.get_five_counters(WEEK), axis=1))


def score_level(rows: DriveDayRows) -> PeerVerdict:
    """Return log(1 + raw 5) + log(1 + raw 197) + log(1 + raw 198), only for ranking. An unreported counter adds 0."""
    return PeerVerdict(_sum_of_logs(_read_sector_counts(rows)))


def score_rise(rows: DriveDayRows) -> PeerVerdict:
    """Return `level` of the rises of the three counters within 7 days, only for ranking.

    A fall, a counter that is not reported, and a drive not yet seen 7 days before add 0.
    """
    return PeerVerdict(_sum_of_logs(_read_sector_counts(rows) - _read_sector_counts(rows, WEEK)))


def _read_sector_counts(rows: DriveDayRows, ago: int = 0) -> Floats:
    """Return raw 5, 197, 198 as they were `ago` days before: (rows, 3), NaN where not reported."""
    place = rows.find_history_rows(ago)
    return np.stack([rows.get_raw_values(smart_id, place) for smart_id in SECTORS], axis=1)


def _sum_of_logs(counts: Floats) -> Floats:
    """Return the sum of log(1 + count) over the columns: (rows,). NaN and negative counts add 0."""
    return np.asarray(np.log1p(np.maximum(np.nan_to_num(counts), 0.0)).sum(axis=1), dtype=np.float64)


def _to_counter_verdict(count: np.ndarray) -> PeerVerdict:
    score = np.asarray(count, dtype=np.float64)
    return PeerVerdict(score, status_of(score > 0))
