"""Scrutiny's thresholds: buckets of raw values in which Backblaze's drives failed at 10 or 20 % a year.

Source: AnalogJ/scrutiny, `ValidateThreshold`. A critical attribute fails in a bucket with a rate of 0.10, any other
attribute at 0.20. Above the last bucket it only warns. A drive that has failed stays failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from predrain.models.evaluate.arrays import Bools, Floats
from predrain.models.lab.peers.drive_days import DriveDayRows
from predrain.models.lab.peers.peer_answer import PeerVerdict, status_of

INF: Final = float("inf")
FAILS: Final[Mapping[int, tuple[tuple[float, float], ...]]] = {
    5: ((17, 70_000),),
    10: ((1, 80),),
    11: ((1, 80),),
    183: ((3, 130),),
    187: ((1, 120),),
    188: ((101, INF),),
    189: ((31, 150),),
    196: ((12, 17), (28, 45)),
    197: ((2, 1600),),
    198: ((1, 16),),
    199: ((17, 35), (71, 130)),
}
"""SMART id -> ranges of whole raw values, both ends included."""
FAILS_NORMALISED: Final = {184: (94.0, 98.0, 99.0)}


def apply_scrutiny_thresholds(rows: DriveDayRows) -> PeerVerdict:
    """Return 2 and `bad` if the drive failed on this or an earlier row, 1 and `warning` above a last bucket, else 0."""
    size = len(rows.history.day)
    failed, beyond = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    for smart_id, ranges in FAILS.items():
        value = rows.history.raw.get(smart_id, rows.columns.raw.get(smart_id))
        if value is not None:
            failed |= _is_inside_ranges(value, ranges)
            beyond |= value > ranges[-1][1]
    for smart_id, values in FAILS_NORMALISED.items():
        if smart_id in rows.columns.normalised:
            failed |= np.isin(rows.columns.normalised[smart_id], values)
    first = _find_first_failures(failed, rows)
    place = rows.find_history_rows()
    seen = place >= 0
    bad = seen & (place >= first[rows.drive])
    warning = seen & beyond[place]
    lacking = [str(n) for n in FAILS if not rows.has_raw_values(n)]
    lacking += [f"normalised {n}" for n in FAILS_NORMALISED if n not in rows.columns.normalised]
    return PeerVerdict(
        np.where(bad, 2.0, np.where(warning, 1.0, 0.0)),
        status_of(bad, warning),
        f"the history lacks {', '.join(lacking)}" if lacking else "",
    )


def _is_inside_ranges(value: Floats, ranges: tuple[tuple[float, float], ...]) -> Bools:
    inside = np.zeros(len(value), dtype=bool)
    for low, high in ranges:
        inside |= (value >= low) & (value <= high)
    return inside


def _find_first_failures(failed: Bools, rows: DriveDayRows) -> np.ndarray:
    """Return the place of each drive's first failed row: (drives,), beyond every place without one."""
    place = np.where(failed, np.arange(len(failed)), len(failed))
    return np.minimum.reduceat(place, rows.history.start[:-1]) if len(place) else place
