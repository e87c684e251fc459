"""Real drives in simulated slots: which drive sits under which OSD, what it says on a day, and when it dies.

The calendar is the histories' own: day by day a drive reports what the real one reported. A drive's death is the
operator's record (the first row with `failure` = 1); only the world and the closing table know it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np

from data.device_id import device_id
from data.history import EPOCH, History, HistoryFiles
from data.ids import DeviceId, HostName, OsdId
from data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart
from data.refusal import Refusal

SYMPTOMS = (5, 187, 188, 197, 198)
"""A failure is silent when these are all zero the day before it (the protocol's definition)."""

COUNTER_OF = {
    5: "reallocated",
    187: "reported_uncorrectable",
    188: "command_timeouts",
    197: "pending",
    198: "offline_uncorrectable",
    199: "crc_errors",
}


class TooFewDrives(Refusal):
    """The histories hold too few drives for the cluster."""


@dataclass(frozen=True, slots=True)
class Drive:
    """One real drive. `death` is the last day it worked, None when it was still alive on the last day of the data."""

    index: int
    device: DeviceId
    serial: str
    model: str
    death: date | None


class Fleet:
    """Drives in slots. Mutable: the world swaps dead and drained drives for spares."""

    def __init__(self, history: History, deaths: dict[str, date], osds: Sequence[OsdId], seed: int, start: date) -> None:
        """Put every drive that will die after `start` into a random slot, and living ones into the rest.

        Raises TooFewDrives.
        """
        self._history = history
        rng = np.random.default_rng(seed)
        doomed: list[Drive] = []
        living: list[Drive] = []
        last_day = int(history.day.max()) if len(history.day) else 0
        for index, serial in enumerate(history.serials):
            first, last = history.start[index], history.start[index + 1] - 1
            model = history.model_names[history.model[last]]
            name = device_id(None, model, str(serial))
            if name is None or history.day[first] > _day(start):
                continue
            death = deaths.get(str(serial))
            drive = Drive(index, name, str(serial), model, death)
            if death is not None and death >= start:
                doomed.append(drive)
            elif death is None and history.day[last] == last_day:
                living.append(drive)
        if len(doomed) > len(osds) // 4:
            keep = rng.permutation(len(doomed))[: len(osds) // 4]
            doomed = [doomed[i] for i in sorted(keep)]
        if len(doomed) + len(living) < len(osds):
            raise TooFewDrives(
                f"the histories hold {len(doomed) + len(living)} usable drives on {start}, the cluster has "
                f"{len(osds)} OSDs; name a smaller cluster or a folder with more drives"
            )
        order = [living[i] for i in rng.permutation(len(living))]
        first_living = len(osds) - len(doomed)
        seated = [*doomed, *order[:first_living]]
        slots = [osds[i] for i in rng.permutation(len(osds))]
        self.spares = deque(order[first_living:])
        self.seats: dict[OsdId, Drive | None] = dict(zip(slots, seated, strict=True))
        self.died_of: dict[OsdId, Drive] = {}

    @property
    def doomed(self) -> list[tuple[OsdId, Drive]]:
        """Seated drives that will die, by day of death."""
        found = [(osd, d) for osd, d in self.seats.items() if d is not None and d.death is not None]
        return sorted(found, key=lambda pair: (pair[1].death or date.max, pair[0]))

    def swap(self, osd: OsdId) -> Drive | None:
        """Take the drive out of a slot and put a spare in; None when there is no spare left."""
        spare = self.spares.popleft() if self.spares else None
        self.seats[osd] = spare
        return spare

    def reading(self, osd: OsdId, host: HostName, at: datetime) -> Reading | None:
        """What the drive under this OSD says at `at`; None when the slot is empty or the drive has no row yet."""
        drive = self.seats[osd]
        if drive is None:
            return None
        row = self._row(drive, _day(at.date()))
        if row is None:
            return None
        seen = Smart(
            protocol=Protocol.ATA,
            identity=Identity(model=drive.model, serial=drive.serial, rotation_rpm=5900),
            passed=True,
            counters=Counters(**{name: self._count(number, row) for number, name in COUNTER_OF.items()}),
            attributes={
                number: Attribute(name=f"smart_{number}", raw=count)
                for number in self._history.raw
                if (count := self._count(number, row)) is not None
            },
            power_on_hours=self._count(9, row),
            temperature_c=self._count(194, row),
        )
        return Reading(drive.device, host, at, at, seen)

    def silent(self, drive: Drive) -> bool:
        """Whether this drive showed none of the five symptoms on the day before its death."""
        assert drive.death is not None
        row = self._row(drive, _day(drive.death) - 1)
        return row is None or not any((self._count(number, row) or 0) > 0 for number in SYMPTOMS)

    def _row(self, drive: Drive, day: int) -> int | None:
        begin, end = self._history.start[drive.index], self._history.start[drive.index + 1]
        row = int(np.searchsorted(self._history.day[begin:end], day, side="right")) - 1
        return None if row < 0 else int(begin + row)

    def _count(self, number: int, row: int) -> int | None:
        column = self._history.raw.get(number)
        return None if column is None or np.isnan(column[row]) else int(column[row])


def _day(when: date) -> int:
    return (when - EPOCH).days


def read_fleet(paths: Sequence[Path]) -> tuple[History, dict[str, date]]:
    """Histories and the operator's record of deaths (serial number to last working day)."""
    import duckdb

    files = HistoryFiles(paths)
    history = files.read()
    deaths: dict[str, date] = {}
    for path in [*files.paths, *files.others]:
        source = f"read_parquet('{path}')" if path.suffix == ".parquet" else f"read_csv('{path}')"
        columns = {row[0] for row in duckdb.sql(f"DESCRIBE SELECT * FROM {source}").fetchall()}
        day = "last_date" if "last_date" in columns else "date"
        if "failure" not in columns:
            continue
        query = f"SELECT serial_number, min(CAST({day} AS DATE)) FROM {source} WHERE failure = 1 GROUP BY 1"  # noqa: S608
        deaths.update({str(serial): died for serial, died in duckdb.sql(query).fetchall()})
    return history, deaths


def at_hour(day: date, hour: float) -> datetime:
    """A UTC instant on a day."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=hour)
