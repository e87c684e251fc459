"""The rows of a drive's earlier days. Columns that seldom change are held once for each run of days with equal values.

A drive with a full window has 31 rows of 26 columns, and on nearly every day only six of the columns change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.features.drive_history_rows import COUNTERS, RISING, WORK, Floats

PAST: Final = (
    "day",
    *(f"risen_{n}" for n in RISING),
    *(f"rises_{n}" for n in COUNTERS),
    *(f"level_{n}" for n in COUNTERS),
    "heat",
    "warm_days",
)
"""The columns that features read from earlier days. Only these are held of earlier days."""
DAILY: Final = ("day", *(f"risen_{n}" for n in WORK), "heat", "warm_days")
"""The columns of `PAST` that change from day to day."""
SELDOM: Final = tuple(name for name in PAST if name not in DAILY)
"""The other columns of `PAST`."""
_DAILY_AT: Final = np.array([PAST.index(name) for name in DAILY])
_SELDOM_AT: Final = np.array([PAST.index(name) for name in SELDOM])


@dataclass(frozen=True, slots=True, eq=False)
class PastRows:
    """The rows of earlier days, oldest first."""

    daily: Floats
    """(days, DAILY)"""
    seldom: Floats
    """(runs, SELDOM), one row for each run of days with equal values"""
    lengths: NDArray[np.int64]
    """(runs,): the days of each run"""

    def __len__(self) -> int:
        return len(self.daily)

    def expand(self) -> Floats:
        """Return the (days, PAST) rows."""
        rows = np.empty((len(self.daily), len(PAST)))
        rows[:, _DAILY_AT] = self.daily
        rows[:, _SELDOM_AT] = np.repeat(self.seldom, self.lengths, axis=0)
        return rows


def compress_past(rows: Floats) -> PastRows:
    """Return (days, PAST) rows with each run of equal values held once. `expand` gives back the same bits."""
    seldom = np.ascontiguousarray(rows[:, _SELDOM_AT])
    bits = seldom.view(np.int64)  # NaN differs from itself, its bits do not
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (bits[1:] != bits[:-1]).any(axis=1)
    places = np.flatnonzero(begins)
    lengths = np.diff(places, append=len(rows))
    return PastRows(np.ascontiguousarray(rows[:, _DAILY_AT]), seldom[places], lengths.astype(np.int64))


def find_past_columns(
    pasts: Sequence[PastRows], latest: Floats, held: NDArray[np.int64]
) -> dict[str, Floats]:
    """Return the columns of `PAST`, each (held.size,), at the rows `held` of several drives.

    A row is counted through all drives' earlier days, drive by drive, and then through `latest`, the (drives, PAST)
    newest rows.
    """
    daily = np.concatenate([*(past.daily for past in pasts), latest[:, _DAILY_AT]])
    seldom = np.concatenate([*(past.seldom for past in pasts), latest[:, _SELDOM_AT]])
    lengths = np.concatenate([*(past.lengths for past in pasts), np.ones(len(latest), dtype=np.int64)])
    runs = np.repeat(np.arange(len(lengths)), lengths)[held.ravel()]
    columns = dict(zip(DAILY, np.ascontiguousarray(daily[held.ravel()].T), strict=True))
    columns |= zip(SELDOM, np.ascontiguousarray(seldom[runs].T), strict=True)
    return columns
