"""Figures of the archive: what a disk's year by the hour takes, and what it costs to archive a day of a fleet.

The drives work while they are read: temperatures, sectors, load cycles and seek errors change from hour to hour, and
no reading is taken or received at a round time. Real disks' answers are the first readings.
"""

from __future__ import annotations

import math
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import msgspec

from predrain.data.history.archive_reading import read_archived_readings
from predrain.data.history.archive_writing import archive_days
from predrain.data.reading import Reading, Smart
from predrain.data.store.sqlite_store import SqliteStore
from predrain.features.drive_state import values_of
from tests.bench import stage as scene
from tests.bench.figure import Figure, Work
from tests.bench.stage import NOW

DISKS = 500
FLEET = 6_000
HOURS = 24
YEAR = 8_766
"""Hours of a year."""
BEGIN = NOW.replace(hour=0)
DAY = BEGIN.date()
SECTOR_BYTES = 512


def archived_year() -> Work:
    """The kilobytes of a disk's year, by the files of a day of DISKS disks."""
    with _filled(DISKS) as (store, _, folder):
        work = _archive(store, folder, DISKS)
        size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    each = size / (DISKS * HOURS)
    work.amount = each * YEAR / 1_000
    work.note = f"{each:,.1f} B a reading, {DISKS} disks; {_measure_home():,.0f} kB a disk of 12 disks"
    return work


def stored_year() -> Work:
    """The kilobytes of the same year in the store's file, without outlooks."""
    with _filled(DISKS) as (_, path, _):
        work = Work()
        with work.timed():
            size = path.stat().st_size
    work.amount = size / (DISKS * HOURS) * YEAR / 1_000
    return work


def archived_day() -> Work:
    """The readings of a day of FLEET disks."""
    with _filled(FLEET) as (store, _, folder):
        return _archive(store, folder, FLEET)


def read_day() -> Work:
    """The same readings, given back from the archive."""
    with _filled(FLEET) as (store, _, folder):
        _archive(store, folder, FLEET)
        work = Work()
        with work.timed():
            work.amount = sum(1 for _ in read_archived_readings(folder, DAY, DAY, lambda _: None))
        return work


def _measure_home() -> float:
    with _filled(12) as (store, _, folder):
        _archive(store, folder, 12)
        return sum(path.stat().st_size for path in folder.rglob("*.parquet")) / 12 * YEAR / HOURS / 1_000


def _archive(store: SqliteStore, folder: Path, disks: int) -> Work:
    work = Work()
    with work.timed():
        done = archive_days(store, folder, values_of, [DAY], {})
    assert done.readings == disks * HOURS, done
    work.amount = done.readings
    return work


@contextmanager
def _filled(disks: int) -> Iterator[tuple[SqliteStore, Path, Path]]:
    """A store with a day of readings, its file, and the folder of an archive."""
    fleet = scene.drives(disks)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite"
        with closing(SqliteStore(path)) as store:
            works = [DriveWork(number) for number in range(disks)]
            for hour in range(HOURS):
                store.add_readings(works[n].read(smart, hour) for n, smart in enumerate(fleet))
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            yield store, path, Path(folder) / "archive"


class DriveWork:
    """A drive that works: what it has written, in sectors, and what its host does with it."""

    def __init__(self, number: int) -> None:
        self._number, self._random, self._sectors = number, Random(number), 0
        self._rate = 1e-6 / self._random.uniform(0.2, 3)
        self._offset = timedelta(seconds=self._random.random() * 3_600)

    def read(self, smart: Smart, hour: int) -> Reading:
        """The drive's reading of an hour of the day."""
        random = self._random
        self._sectors += int(random.expovariate(self._rate))
        at = BEGIN + min(
            timedelta(hours=hour) + self._offset + timedelta(seconds=random.random() * 2),
            timedelta(hours=hour + 1, microseconds=-1),
        )
        reading = scene.reading(self._number, smart, at, hour)
        assert isinstance(reading.seen, Smart)
        celsius = 28 + round(3 * math.sin(hour / 4 + self._number)) + (random.random() < 0.3)
        attributes, counters = dict(reading.seen.attributes), reading.seen.counters
        grown = {241: self._sectors, 242: 2 * self._sectors + random.randrange(99), 193: 2 * hour, 240: hour}
        for id_, row in reading.seen.attributes.items():
            if id_ in (190, 194):
                changed = msgspec.structs.replace(row, raw=celsius, value=100 - celsius, raw_packed=None)
            elif id_ in (1, 7, 195) and (row.raw > 1_000 or row.raw_packed):
                number = random.randrange(1 << 28)
                packed = None if row.raw_packed is None else number
                raw = row.raw if row.raw_packed is not None else number
                changed = msgspec.structs.replace(row, raw=raw, raw_packed=packed)
            elif id_ in grown:
                changed = msgspec.structs.replace(row, raw=row.raw + grown[id_], raw_packed=None)
            else:
                continue
            attributes[id_] = changed
        if counters.bytes_written is not None:
            more = SECTOR_BYTES * self._sectors
            counters = replace(counters, bytes_written=counters.bytes_written + more)
        if counters.bytes_read is not None:
            counters = replace(counters, bytes_read=counters.bytes_read + SECTOR_BYTES * grown[242])
        seen = replace(reading.seen, attributes=attributes, counters=counters, temperature_c=celsius)
        received = at + timedelta(microseconds=random.randrange(200_000, 3_000_000))
        return replace(reading, received_at=received, seen=seen)


FIGURES = (
    Figure(
        "archive: a disk's year by the hour", "kB", archived_year, stored_year, "in the store", "under 600 kB",
        lambda work, _: work.amount < 600,
    ),
    Figure(
        f"archive: a day of {FLEET:,} disks", "readings", archived_day, read_day, "read back", "under 60 s of CPU",
        lambda work, _: work.cpu < 60, long=True,
    ),
)  # fmt: skip
