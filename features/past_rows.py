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

    @property
    def days(self) -> NDArray[np.int64]:
        """The (days,) column of the day, days since 1970-01-01."""
        return self.daily[:, 0].astype(np.int64)

    def select_columns(self, places: NDArray[np.int64]) -> dict[str, Floats]:
        """Return each column of `PAST` at the rows `places`, (places,)."""
        runs = np.repeat(np.arange(len(self.lengths)), self.lengths)[places]
        columns = dict(zip(DAILY, np.ascontiguousarray(self.daily[places].T), strict=True))
        columns |= zip(SELDOM, np.ascontiguousarray(self.seldom[runs].T), strict=True)
        return columns

    def expand_runs(self) -> Floats:
        """Return the (days, PAST) rows."""
        rows = np.empty((len(self.daily), len(PAST)))
        rows[:, _DAILY_AT] = self.daily
        rows[:, _SELDOM_AT] = np.repeat(self.seldom, self.lengths, axis=0)
        return rows


def compress_past(rows: Floats) -> PastRows:
    """Return (days, PAST) rows with each run of equal values held once. `expand_runs` gives back the same bits."""
    seldom = np.ascontiguousarray(rows[:, _SELDOM_AT])
    bits = seldom.view(np.int64)  # NaN differs from itself, its bits do not
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (bits[1:] != bits[:-1]).any(axis=1)
    places = np.flatnonzero(begins)
    lengths = np.diff(places, append=len(rows))
    return PastRows(np.ascontiguousarray(rows[:, _DAILY_AT]), seldom[places], lengths.astype(np.int64))


def append_row(past: PastRows, row: Floats, since: float) -> PastRows:
    """Return the rows with one more, (PAST,), and without those that no longer held on day `since`."""
    daily = np.concatenate([past.daily, row[_DAILY_AT][None, :]])
    values, lengths = row[_SELDOM_AT], past.lengths
    if len(lengths) and past.seldom[-1].tobytes() == values.tobytes():
        seldom, lengths = past.seldom, lengths.copy()
        lengths[-1] += 1
    else:
        seldom, lengths = np.concatenate([past.seldom, values[None, :]]), np.append(lengths, 1)
    over = int(np.searchsorted(daily[:, 0], since, side="right")) - 1
    if over <= 0:
        return PastRows(daily, seldom, lengths)
    ends = np.cumsum(lengths)
    run = int(np.searchsorted(ends, over, side="right"))
    lengths = lengths[run:].copy()
    lengths[0] = ends[run] - over
    return PastRows(daily[over:], seldom[run:], lengths)


def join_pasts(pasts: Sequence[PastRows], latest: Floats) -> PastRows:
    """Return the rows of several drives, drive by drive, and after them `latest`, their (drives, PAST) newest rows."""
    return PastRows(
        np.concatenate([*(past.daily for past in pasts), latest[:, _DAILY_AT]]),
        np.concatenate([*(past.seldom for past in pasts), latest[:, _SELDOM_AT]]),
        np.concatenate([*(past.lengths for past in pasts), np.ones(len(latest), dtype=np.int64)]),
    )
