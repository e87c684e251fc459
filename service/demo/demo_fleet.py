"""Real drives in simulated slots: the drive under each OSD, its report on a day, and its death.

The calendar is that of the histories: day by day a drive reports what the real one reported. A drive's death is
the operator's record (the first row with `failure` = 1); only the world and the closing table know it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from pathlib import Path

import numpy as np

from predrain.data.device_id import device_id
from predrain.data.error_counts import ATA_COUNTERS
from predrain.data.history import EPOCH, History, HistoryFiles
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.lifespan import Lifespans, sources_of
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart
from predrain.data.refusal import Refusal

SYMPTOMS = (5, 187, 188, 197, 198)
"""A failure is silent when these are all zero the day before it (the protocol's definition)."""

DOOMED_AT_MOST = 20
"""One slot in so many may hold a drive that will die, since histories of a large fleet hold hundreds of them."""


SEATS_AT_MOST = 16
"""The largest number of slots that show the history of one drive, each time under its own serial number."""


_ROWS_KEPT = 1 << 14
"""Rows of the histories whose counts are kept: several slots show one row within `SEATS_AT_MOST` days."""


class TooFewDrives(Refusal):
    """The histories hold too few drives for the cluster."""


@dataclass(frozen=True, slots=True)
class Drive:
    """One real drive. `death` is the last day on which it works; None: it was alive when the data end."""

    index: int
    device: DeviceId
    serial: str
    model: str
    death: date | None
    days_ahead: int = 0
    """The slot shows the history so many days before the days on which it was recorded; negative: after them."""


class DemoFleet:
    """Drives in slots. Mutable: the world replaces dead and drained drives by spares."""

    def __init__(self, known: Histories, osds: Sequence[OsdId], seed: int, start: date) -> None:
        """Put drives that will die after `start` into random slots, and living ones into the rest.

        If the cluster is larger than the histories, each drive is in several slots (`shown_most`: in how many at
        most), each time on other days: a history that is shown twelve times raises twelve false alarms, or dies twelve
        times. If only living drives were shown again, a large cluster would have the false alarms of its size and the
        deaths of a small one. Raises TooFewDrives.
        """
        history, spans = known.history, known.spans
        self._history = history
        self._read_counts = lru_cache(maxsize=_ROWS_KEPT)(self._read_row)
        rng = np.random.default_rng(seed)
        dying: list[Drive] = []
        living: list[Drive] = []
        last_day = int(spans.last.max(initial=0))
        for index, place in enumerate(spans.find_positions(history.serials)):
            first = history.start[index]
            if (
                place < 0
                or history.day[first] > _to_epoch_day(start)
                or spans.last[place] < _to_epoch_day(start)
            ):
                continue
            serial = str(history.serials[index])
            model = history.model_names[history.model[first]]
            name = device_id(None, model, serial)
            if name is None:
                continue
            if spans.died[place]:
                death = EPOCH + timedelta(days=int(spans.last[place]))
                dying.append(Drive(index, name, serial, model, death))
            elif spans.last[place] == last_day:
                living.append(Drive(index, name, serial, model, None))
        most = max(1, len(osds) // DOOMED_AT_MOST)
        dying = [dying[i] for i in sorted(rng.permutation(len(dying))[:most])]
        first_living = len(osds) - len(dying)
        self.shown_most = -(-first_living // max(1, len(living)))
        if first_living and (not living or self.shown_most > SEATS_AT_MOST):
            raise TooFewDrives(
                f"the histories hold {len(dying) + len(living)} usable drives on {start}, the cluster has "
                f"{len(osds)} OSDs; name a smaller cluster or a folder with more drives"
            )
        turns = range(1, self.shown_most)
        dying += [
            _clone_dying_drive(drive, turn, self.shown_most, start) for turn in turns for drive in dying
        ]
        dying = dying[:most]
        first_living = len(osds) - len(dying)
        order = [living[i] for i in rng.permutation(len(living))]
        order += [_clone_living(drive, turn) for turn in turns for drive in order]
        if self.shown_most > 1:  # a fleet that is larger than the histories needs more spares, too
            order += [_clone_living(drive, self.shown_most) for drive in order[: len(living)]]
        seated = [*dying, *order[:first_living]]
        slots = [osds[i] for i in rng.permutation(len(osds))]
        self.spares = deque(order[first_living:])
        self.drives: dict[OsdId, Drive | None] = dict(zip(slots, seated, strict=True))
        self.died_of: dict[OsdId, Drive] = {}

    @property
    def dying_drives(self) -> list[tuple[OsdId, Drive]]:
        """The drives in slots that will die, by day of death."""
        found = [(osd, d) for osd, d in self.drives.items() if d is not None and d.death is not None]
        return sorted(found, key=lambda pair: (pair[1].death or date.max, pair[0]))

    def swap(self, osd: OsdId) -> Drive | None:
        """Take the drive out of a slot and put a spare in; return the spare, or None if there is none left."""
        spare = self.spares.popleft() if self.spares else None
        self.drives[osd] = spare
        return spare

    def reading(self, osd: OsdId, host: HostName, at: datetime) -> Reading | None:
        """Return the reading of the drive under this OSD at `at`; None if the slot is empty or there is no data
        yet.
        """
        drive = self.drives[osd]
        if drive is None:
            return None
        row = self._row(drive, _to_epoch_day(at.date()))
        if row is None:
            return None
        identity = Identity(model=drive.model, serial=drive.serial, rotation_rpm=5900)
        return Reading(drive.device, host, at, at, replace(self._read_counts(row), identity=identity))

    def is_silent_failure(self, drive: Drive) -> bool:
        """Return whether this drive showed none of the five symptoms on the day before its death."""
        assert drive.death is not None
        row = self._row(drive, _to_epoch_day(drive.death) - 1)
        return row is None or not any((self._count(number, row) or 0) > 0 for number in SYMPTOMS)

    def _read_row(self, row: int) -> Smart:
        """Return the counts of a row of the histories, without the drive's identity."""
        return Smart(
            protocol=Protocol.ATA,
            identity=Identity(),
            passed=True,
            counters=Counters(**{name: self._count(number, row) for number, name in ATA_COUNTERS.items()}),
            attributes={
                number: Attribute(name=f"smart_{number}", raw=count)
                for number in self._history.raw
                if (count := self._count(number, row)) is not None
            },
            power_on_hours=self._count(9, row),
            temperature_c=self._count(194, row),
        )

    def _row(self, drive: Drive, day: int) -> int | None:
        begin, end = self._history.start[drive.index], self._history.start[drive.index + 1]
        row = int(np.searchsorted(self._history.day[begin:end], day + drive.days_ahead, side="right")) - 1
        return None if row < 0 else int(begin + row)

    def _count(self, number: int, row: int) -> int | None:
        column = self._history.raw.get(number)
        return None if column is None or np.isnan(column[row]) else int(column[row])


def _clone_living(drive: Drive, turn: int) -> Drive:
    """Return a drive that shows the same history `turn` days later, under another serial number."""
    return _clone_drive(drive, turn, days_ahead=-turn)


def _clone_dying_drive(drive: Drive, turn: int, turns: int, start: date) -> Drive:
    """Return a drive that dies of the same history `turn` days earlier, under another serial number.

    Earlier, since no history has days from before its first. The turns of a drive that dies within `turns` days of
    `start` are spread over the days from `start` on.
    """
    assert drive.death is not None
    days_ahead = turn * min(turns, (drive.death - start).days) // turns
    return _clone_drive(drive, turn, days_ahead, drive.death - timedelta(days=days_ahead))


def _clone_drive(drive: Drive, turn: int, days_ahead: int, death: date | None = None) -> Drive:
    serial = f"{drive.serial}-{turn + 1}"
    name = device_id(None, drive.model, serial)
    assert name is not None
    return replace(drive, device=name, serial=serial, days_ahead=days_ahead, death=death)


def _to_epoch_day(when: date) -> int:
    return (when - EPOCH).days


@dataclass(frozen=True, slots=True)
class Histories:
    """Readings of drives, and the operator's record of their deaths."""

    history: History
    spans: Lifespans
    paths: tuple[Path, ...]


def read_histories(paths: Sequence[Path]) -> Histories:
    """Read the newest of the sources among `paths` (daily files, or change points with a drives table)
    completely.

    Raises UnreadableHistory.
    """
    newest = max(sources_of(paths), key=lambda source: int(source.lifespans.last.max(initial=0)))
    return Histories(HistoryFiles(newest.files).read(), newest.lifespans, newest.files)


def at_hour(day: date, hour: float) -> datetime:
    """Return a UTC instant on a day."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=hour)
