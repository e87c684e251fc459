"""Figures of drives with a past: what they take in the store, at a take-over, and when readings come twice."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import psycopg

from predrain.data.clock import SystemClock
from predrain.data.log.log_port import Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.reading import Reading, Smart
from predrain.data.store.postgres_store import PostgresStore, migrate_postgres_store
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import Checkpoint, Store
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.newest_outlooks import NewestOutlookSummaries
from predrain.service.forecasting.worker import ScoringWorker
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.outlook_announcements import Announcements
from tests.bench import stage as scene
from tests.bench.figure import Figure, MissingInput, Work
from tests.bench.stage import NOW

DRIVES = 2_000
PAST = 500
"""Readings of each drive that is taken over."""
DAYS = 90 * 24 + 310
"""Readings of a drive's first 400 days: hourly for 90 days, and daily for the other 310."""
WATCHED_DAYS = 40
"""Days for which a filled store's drives were watched; a state keeps those that the longest window needs."""
LOOKS = 6
HOUR = timedelta(hours=1)


class Crew:
    """One worker on a store, and the fleet whose readings it gets."""

    def __init__(self, store: Store) -> None:
        clock = SystemClock()
        self.store, self.log, self.sender = store, MemoryLog(), RecordSender("bench", clock)
        self.fleet = scene.drives(DRIVES)
        self.worker = ScoringWorker(
            self.log,
            store,
            clock,
            BundledForecaster.load(),
            NewestOutlookSummaries(),
            Announcements(),
            self.sender,
        )

    def look(self, hours: int) -> None:
        """A reading of each drive, so many hours after NOW."""
        readings = [
            scene.reading(number, smart, NOW + hours * HOUR, max(0, hours))
            for number, smart in enumerate(self.fleet)
        ]
        self.log.append(
            Topic.READINGS, [Record(one.device, self.sender.encode_envelope(one)) for one in readings]
        )

    def work(self) -> Work:
        """Take all that waits."""
        work = Work()
        with work.timed():
            while taken := self.worker.step().taken:
                work.amount += taken
        return work


def stored() -> Work:
    """The kilobytes that a drive's first 400 days take in a file: the growth of the file with each reading, and what it
    keeps once of a drive (its newest reading and outlook, and its state).
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore(Path(folder) / "store.sqlite")) as store,
    ):
        crew, work = Crew(store), Work()
        sizes = list[_StoreSize]()
        for hours in range(LOOKS):
            crew.look(hours)
            spent = crew.work()
            work.seconds, work.cpu = work.seconds + spent.seconds, work.cpu + spent.cpu
            sizes.append(_measure_store(Path(folder) / "store.sqlite"))
    each = (sizes[-1].rows - sizes[0].rows) / (LOOKS - 1) / DRIVES
    once = sizes[-1].newest / DRIVES
    work.amount = (each * DAYS + once) / 1_000
    work.note = f"{each:,.0f} B a reading with its outlook, {once:,.0f} B once of a drive"
    return work


@dataclass(frozen=True)
class _StoreSize:
    """Bytes of a store's file: tables with a row for each drive, and all the rest."""

    newest: int
    rows: int


def _measure_store(path: Path) -> _StoreSize:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (newest,) = connection.execute(
            "SELECT sum(pgsize) FROM dbstat JOIN sqlite_master USING (name) "
            "WHERE tbl_name IN ('latest_readings', 'latest_outlooks', 'checkpoints')"
        ).fetchone()
    return _StoreSize(newest, path.stat().st_size - newest)


def taken_over() -> Work:
    """The first readings of drives with a past, after a worker was given them."""
    with _past() as crew:
        crew.look(1)
        return crew.work()


def known() -> Work:
    """The readings after those, of drives whose states the worker has."""
    with _past() as crew:
        crew.look(1)
        crew.work()
        crew.look(2)
        return crew.work()


def repeated() -> Work:
    """Readings that were scored before and come again."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore(Path(folder) / "store.sqlite")) as store,
    ):
        crew = _scored(store)
        crew.look(LOOKS - 1)
        return crew.work()


def fresh() -> Work:
    """As many readings of the same drives that come for the first time."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore(Path(folder) / "store.sqlite")) as store,
    ):
        crew = _scored(store)
        crew.look(LOOKS)
        return crew.work()


def _scored(store: Store) -> Crew:
    crew = Crew(store)
    for hours in range(LOOKS):
        crew.look(hours)
        crew.work()
    return crew


@contextmanager
def _past() -> Iterator[Crew]:
    """A worker that knows no drive, on PostgreSQL with PAST readings of each, all in its checkpoint."""
    from tests.system.postgres.server import running

    if not any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        raise MissingInput("PostgreSQL is not installed: apt-get install postgresql-15")
    with running() as server:
        url = server.url(server.database())
        migrate_postgres_store(url)
        with closing(PostgresStore(url)) as store:
            crew = Crew(store)
            fill_past(store, crew.fleet)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(
                    "INSERT INTO readings SELECT device, taken_at - 3600000000 * hour, document "
                    "FROM readings, generate_series(1, %s) AS hour",
                    (PAST - 1,),
                )
                connection.execute("VACUUM ANALYZE readings")
            yield crew


def fill_past(
    store: Store, fleet: Sequence[Smart], *, checkpoints: bool = True, at: datetime = NOW, first: int = 0
) -> None:
    """A reading of `at`, an outlook and, if wanted, a checkpoint of each drive, as a worker would have left them that
    has watched the drives for `WATCHED_DAYS`.

    first: the number of the first drive of `fleet` among all drives.
    """
    forecaster = BundledForecaster.load()
    made = {}
    readings, outlooks, saved = list[Reading](), [], []
    for number, smart in enumerate(fleet, first):
        reading = scene.reading(number, smart, at)
        readings.append(reading)
        kind = smart.identity.model, number % 40 == 0
        if kind not in made:
            state = forecaster.fold(None, [*_watch_earlier(number, smart, at), reading])
            made[kind] = state, forecaster.compute_outlooks([state], at, {})[0]
        state, outlook = made[kind]
        outlooks.append(replace(outlook, device=reading.device))
        packed = forecaster.pack(replace(state, device=reading.device))
        saved.append(Checkpoint(reading.device, forecaster.layout, at, packed))
    store.add_readings(readings)
    store.save_outlooks(outlooks)
    if checkpoints:
        store.save_checkpoints(saved)


def _watch_earlier(number: int, smart: Smart, at: datetime) -> Iterator[Reading]:
    """Yield a reading of each earlier day, oldest first, so that the state has as many days as it ever has."""
    for day in range(WATCHED_DAYS, 0, -1):
        hours = -24 * day if (smart.power_on_hours or 0) >= 24 * WATCHED_DAYS else 0
        yield scene.reading(number, smart, at - timedelta(days=day), hours)


FIGURES = (
    Figure(
        "store: a disk's first 400 days, file", "kB", stored, stored, "itself", "under 2,000 kB",
        lambda work, _: work.amount < 2_000,
    ),
    Figure(
        f"store: drives taken over, {PAST} readings each", "readings", taken_over, known,
        "drives that the worker has", "under 1 ms each", lambda work, _: work.seconds / work.amount < 0.001,
    ),
    Figure(
        "store: readings that come twice", "readings", repeated, fresh,
        "readings that come once", "over 5,000/s", lambda work, _: work.quiet_rate > 5_000,
    ),
)  # fmt: skip
