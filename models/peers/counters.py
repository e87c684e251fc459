"""Rules on the five counters that Backblaze watches. Null never votes.

Sources: Backblaze 2014 (`any5`, `any4`), the AICoE notebook's strongest single counter (`smart_197`), netdata
issue 7383 (`any5_rise`). `level` and `rise` are plain sums of logarithms that anybody would try first; they need no
training and hold for drives of every maker.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from predrain.models.evaluate.arrays import Floats
from predrain.models.peers.rows import FIVE, DriveDayRows
from predrain.models.peers.verdict import PeerVerdict, status_of

WEEK: Final = 7
SECTORS: Final = (5, 197, 198)
"""Reallocated, pending and uncorrectable sectors: the counters that `level` and `rise` read."""
FOUR: Final = tuple(place for place, smart_id in enumerate(FIVE) if smart_id != 188)


def any5(rows: DriveDayRows) -> PeerVerdict:
    """How many of raw 5, 187, 188, 197, 198 are above 0; alarm from one on."""
    return _counted((rows.five() > 0).sum(axis=1))


def any4(rows: DriveDayRows) -> PeerVerdict:
    """The same without 188."""
    return _counted((rows.five()[:, FOUR] > 0).sum(axis=1))


def smart_197(rows: DriveDayRows) -> PeerVerdict:
    """Raw 197, pending sectors; alarm above 0."""
    return _counted(np.nan_to_num(rows.raw(197, rows.place())))


def any5_rise(rows: DriveDayRows) -> PeerVerdict:
    """1 where any of the five rose within 7 days, else 0; alarm at 1."""
    return _counted(np.any(rows.five() > rows.five(WEEK), axis=1))


def score_level(rows: DriveDayRows) -> PeerVerdict:
    """log(1 + raw 5) + log(1 + raw 197) + log(1 + raw 198); a counter that is not reported adds 0. It only ranks."""
    return PeerVerdict(_sum_of_logs(_sectors(rows)))


def score_rise(rows: DriveDayRows) -> PeerVerdict:
    """`level` of the rises of the three counters within 7 days. It only ranks.

    A fall, a counter that is not reported, and a drive not yet seen 7 days before add 0.
    """
    return PeerVerdict(_sum_of_logs(_sectors(rows) - _sectors(rows, WEEK)))


def _sectors(rows: DriveDayRows, ago: int = 0) -> Floats:
    """(rows, 3) raw 5, 197, 198 as they were `ago` days before; NaN where not reported."""
    place = rows.place(ago)
    return np.stack([rows.raw(smart_id, place) for smart_id in SECTORS], axis=1)


def _sum_of_logs(counts: Floats) -> Floats:
    """(rows,) sum of log(1 + count) over the columns; NaN and negative counts add 0."""
    return np.asarray(np.log1p(np.maximum(np.nan_to_num(counts), 0.0)).sum(axis=1), dtype=np.float64)


def _counted(count: np.ndarray) -> PeerVerdict:
    score = np.asarray(count, dtype=np.float64)
    return PeerVerdict(score, status_of(score > 0))
