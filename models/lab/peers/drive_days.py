"""Drives on days, as a history saw them by then."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from predrain.data.history import History
from predrain.models.evaluate.arrays import Floats, Ints, Texts, drive_day
from predrain.models.lab.peers.peer_columns import NOTHING, SmartColumns

FIVE: Final = (5, 187, 188, 197, 198)
"""The five counters that Backblaze watches (Backblaze 2014)."""


@dataclass(frozen=True, slots=True)
class DriveDayRows:
    """Drives on days. `key` is the history's (drive, day), ascending."""

    history: History
    columns: SmartColumns
    key: Ints
    drive: Ints
    day: Ints

    @classmethod
    def from_history(
        cls, history: History, drive: Ints, day: Ints, columns: SmartColumns = NOTHING
    ) -> DriveDayRows:
        """Create the rows. drive, day: (rows,) numbers of the history's drives, days since 1970-01-01."""
        key = drive_day(history.drive.astype(np.int64), history.day.astype(np.int64))
        return cls(history, columns, key, drive, day)

    def select_rows(self, which: Ints) -> DriveDayRows:
        """Return these rows only."""
        return replace(self, drive=self.drive[which], day=self.day[which])

    def find_history_rows(self, ago: int = 0) -> Ints:
        """Return the history's row that held `ago` days before: (rows,), -1 if the drive was not seen yet."""
        place = np.searchsorted(self.key, drive_day(self.drive, self.day - ago), side="right") - 1
        return np.where(place >= self.history.start[self.drive], place, -1)

    def get_raw_values(self, smart_id: int, place: Ints) -> Floats:
        """Return the raw value at these places: (rows,), NaN where it was not reported."""
        return _take_values(self.history.raw.get(smart_id, self.columns.raw.get(smart_id)), place)

    def get_normalised_values(self, smart_id: int, place: Ints) -> Floats:
        """Return the normalised value at these places: (rows,), NaN where it was not reported."""
        return _take_values(self.columns.normalised.get(smart_id), place)

    def has_raw_values(self, smart_id: int) -> bool:
        """Return whether the history holds this raw value at all."""
        return smart_id in self.history.raw or smart_id in self.columns.raw

    def get_five_counters(self, ago: int = 0) -> Floats:
        """Return raw 5, 187, 188 (low word), 197, 198: (rows, 5)."""
        place = self.find_history_rows(ago)
        return np.stack([self.get_raw_values(smart_id, place) for smart_id in FIVE], axis=1)

    def get_models(self) -> Texts:
        """Return the model that each drive reported on that day: (rows,), "" before its first row."""
        place = self.find_history_rows()
        named = np.array(self.history.model_names, dtype=object)[self.history.model[place]]
        return np.where(place >= 0, named, "")


def _take_values(values: Floats | None, place: Ints) -> Floats:
    if values is None:
        return np.full(len(place), np.nan)
    return np.where(place >= 0, values[place], np.nan)
