"""The input of a replay: forecasts of drives, their outcomes, their places, and the thresholds for warning
and bad.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predrain.actions.core.drain_cost import ChanceCurve
from predrain.data.refusal import Refusal

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

WINDOW_DAYS = 30
"""Length in days of a window in which a drive is flagged or not."""


class NoForecastToReplay(Refusal):
    """There is no forecast, or no drive to replay."""


@dataclass(frozen=True, slots=True)
class Notch:
    """The values of p_fail_30d from which a drive is called warning and bad.

    These words are for people and for the guard of mass suspicion. Drains are decided by cost.
    """

    warning: float
    bad: float


@dataclass(frozen=True, slots=True)
class DailyForecasts:
    """p_fail_30d of every drive on every day."""

    first: int
    """Day of the first column, counted from 1970-01-01; the columns are consecutive days."""
    p_fail_30d: NDArray[np.float32]
    """(drives, days) in [0, 1], higher is worse; NaN on days on which nothing is known of the drive."""
    p_fail_7d: NDArray[np.float32] | None = None
    """(drives, days), no more than `p_fail_14d`; None: the risk within the 30 days is assumed to be steady.
    """
    p_fail_14d: NDArray[np.float32] | None = None
    """(drives, days), no more than `p_fail_30d`; given together with `p_fail_7d`."""

    @classmethod
    def from_rows(
        cls,
        drive: Ints,
        day: Ints,
        p_fail_30d: Floats,
        *,
        drives: int,
        every: int,
        sooner: tuple[Floats, Floats] | None = None,
    ) -> DailyForecasts:
        """Build the table from rows of a drive and a day; a row holds for `every` days, or until the drive's
        next row.

        drive: (rows,) numbers below `drives`. day: (rows,) days since 1970-01-01. p_fail_30d: (rows,), NaN if
        the drive could not be judged. sooner: the chances within 7 and 14 days of the same rows. Raises
        NoForecastToReplay without rows.
        """
        if not len(drive):
            raise NoForecastToReplay(
                "there is no forecast to replay; score the days with `predrain score` first"
            )
        first, days = int(day.min()), int(day.max()) - int(day.min()) + every
        asked = np.zeros((drives, days), dtype=bool)
        asked[drive, day - first] = True
        tables = []
        for rows in (p_fail_30d, *(sooner or ())):
            p = np.full((drives, days), np.nan, dtype=np.float32)
            p[drive, day - first] = rows
            for column in range(1, days):
                recent = asked[:, max(0, column - every + 1) : column].any(axis=1)
                carried = recent & ~asked[:, column]
                p[carried, column] = p[carried, column - 1]
            tables.append(p)
        return cls(first, *tables)

    def curves_of(self, drive: int) -> list[ChanceCurve | None]:
        """Return the chances of one drive, day by day; None where nothing is known."""
        month = self.p_fail_30d[drive].tolist()
        if self.p_fail_7d is None or self.p_fail_14d is None:
            return [None if p != p else ChanceCurve.of_month(p) for p in month]
        fortnight = np.minimum(self.p_fail_14d[drive], self.p_fail_30d[drive])
        week, two = np.minimum(self.p_fail_7d[drive], fortnight).tolist(), fortnight.tolist()
        return [
            None if p != p else ChanceCurve(*told) for *told, p in zip(week, two, month, month, strict=True)
        ]

    @property
    def drives(self) -> int:
        """The number of rows of the table."""
        return int(self.p_fail_30d.shape[0])

    @property
    def days(self) -> int:
        """The number of forecast days."""
        return int(self.p_fail_30d.shape[1])

    def select_drives(self, members: Ints) -> DailyForecasts:
        """Return the forecasts of some drives, in that order."""
        sooner = (None if table is None else table[members] for table in (self.p_fail_7d, self.p_fail_14d))
        return DailyForecasts(self.first, self.p_fail_30d[members], *sooner)


@dataclass(frozen=True, slots=True)
class DriveFates:
    """The outcome of each drive (n). Days are counted from 1970-01-01."""

    devices: NDArray[np.object_]
    """(n,) names, each one once."""
    models: NDArray[np.object_]
    first: Ints
    """(n,) first day in service."""
    last: Ints
    """(n,) day of death, or the last day on which the drive was seen alive."""
    died: NDArray[np.bool_]
    end: int
    """Last day of the data; a drive with an earlier `last` that did not die was removed alive."""


@dataclass(frozen=True, slots=True)
class DriveLayout:
    """The place of each drive (n), and the bytes on it."""

    cluster: Ints
    rack: Ints
    """(n,) rack numbers, unique over all clusters."""
    host: Ints
    used_bytes: Ints
    size_bytes: Ints


def laid_out(
    models: NDArray[np.object_],
    size_bytes: Ints,
    *,
    seed: int,
    drives_a_host: int = 45,
    hosts_a_rack: int = 4,
    racks_a_cluster: int = 5,
    fill: float = 0.69,
) -> DriveLayout:
    """Return a generated layout: hosts hold drives of one model, as operators buy them, and are shuffled over
    racks.

    models, size_bytes: (drives,). `seed` decides which drives share a host and which hosts share a rack.
    """
    chance = np.random.default_rng(seed)
    order = chance.permutation(len(models))
    order = order[np.argsort(models[order].astype(str), kind="stable")]
    hosts = -(-len(models) // drives_a_host)
    place = np.empty(len(models), dtype=np.int64)
    place[order] = np.arange(len(models)) // drives_a_host
    host = chance.permutation(hosts)[place].astype(np.int64)
    rack = host // hosts_a_rack
    used = (size_bytes * fill).astype(np.int64)
    return DriveLayout(rack // racks_a_cluster, rack, host, used, size_bytes.astype(np.int64))
