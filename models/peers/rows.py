"""Drives on days, as a history saw them by then."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from predrain.data.history import History
from predrain.models.evaluate.arrays import Floats, Ints, Texts, drive_day
from predrain.models.peers.columns import NOTHING, Columns

FIVE: Final = (5, 187, 188, 197, 198)
"""Backblaze 2014."""


@dataclass(frozen=True, slots=True)
class DriveDayRows:
    """Drives on days. `key` is the history's (drive, day), ascending."""

    history: History
    columns: Columns
    key: Ints
    drive: Ints
    day: Ints

    @classmethod
    def of(cls, history: History, drive: Ints, day: Ints, columns: Columns = NOTHING) -> DriveDayRows:
        """drive, day: (rows,) numbers of the history's drives, days since 1970-01-01."""
        key = drive_day(history.drive.astype(np.int64), history.day.astype(np.int64))
        return cls(history, columns, key, drive, day)

    def only(self, which: Ints) -> DriveDayRows:
        """These rows alone."""
        return replace(self, drive=self.drive[which], day=self.day[which])

    def place(self, ago: int = 0) -> Ints:
        """(rows,) the history's row that held `ago` days before; -1 where the drive was not seen yet."""
        place = np.searchsorted(self.key, drive_day(self.drive, self.day - ago), side="right") - 1
        return np.where(place >= self.history.start[self.drive], place, -1)

    def raw(self, smart_id: int, place: Ints) -> Floats:
        """(rows,) the raw value at these places; NaN where it was not reported."""
        return _at(self.history.raw.get(smart_id, self.columns.raw.get(smart_id)), place)

    def normalised(self, smart_id: int, place: Ints) -> Floats:
        """(rows,) the normalised value at these places; NaN where it was not reported."""
        return _at(self.columns.normalised.get(smart_id), place)

    def has(self, smart_id: int) -> bool:
        """Whether the history holds this raw value at all."""
        return smart_id in self.history.raw or smart_id in self.columns.raw

    def five(self, ago: int = 0) -> Floats:
        """(rows, 5) raw 5, 187, 188 (low word), 197, 198."""
        place = self.place(ago)
        return np.stack([self.raw(smart_id, place) for smart_id in FIVE], axis=1)

    def model(self) -> Texts:
        """(rows,) the model each drive reported on that day; "" before its first row."""
        place = self.place()
        named = np.array(self.history.model_names, dtype=object)[self.history.model[place]]
        return np.where(place >= 0, named, "")


def _at(values: Floats | None, place: Ints) -> Floats:
    if values is None:
        return np.full(len(place), np.nan)
    return np.where(place >= 0, values[place], np.nan)
