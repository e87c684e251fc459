"""Rules on the five counters that Backblaze watches. Null never votes.

Sources: Backblaze 2014 (`any5`, `any4`), the AICoE notebook's strongest single counter (`smart_197`), netdata
issue 7383 (`any5_rise`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from models.peers.rows import FIVE, Rows
from models.peers.verdict import Verdict, status_of

WEEK: Final = 7
FOUR: Final = tuple(place for place, smart_id in enumerate(FIVE) if smart_id != 188)


def any5(rows: Rows) -> Verdict:
    """How many of raw 5, 187, 188, 197, 198 are above 0; alarm from one on."""
    return _counted((rows.five() > 0).sum(axis=1))


def any4(rows: Rows) -> Verdict:
    """The same without 188."""
    return _counted((rows.five()[:, FOUR] > 0).sum(axis=1))


def smart_197(rows: Rows) -> Verdict:
    """Raw 197, pending sectors; alarm above 0."""
    return _counted(np.nan_to_num(rows.raw(197, rows.place())))


def any5_rise(rows: Rows) -> Verdict:
    """1 where any of the five rose within 7 days, else 0; alarm at 1."""
    return _counted(np.any(rows.five() > rows.five(WEEK), axis=1))


def _counted(count: np.ndarray) -> Verdict:
    score = np.asarray(count, dtype=np.float64)
    return Verdict(score, status_of(score > 0))
