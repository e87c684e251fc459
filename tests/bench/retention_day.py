"""Figures of retention: a day of a fleet that is read hourly, in PostgreSQL and in a file.

Each disk has a past of a row a day, and one day of 24 readings and outlooks that has just become 90 days old: 23 of
each are dropped, and one of each that is 400 days old. Processor seconds are those of predrain and of the database.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from predrain.data.store import documents
from predrain.data.store.postgres_store import PostgresStore, migrate_postgres_store
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import Store
from predrain.data.store.store_schema import to_microseconds
from predrain.service.app.retention import HOURLY, thin_old_days
from predrain.service.forecasting.bundle_choice import BundledForecaster
from tests.bench import stage as scene
from tests.bench.figure import Figure, MissingInput, Work
from tests.bench.stage import DURABLE, NOW

DISKS = 3_000
GOAL_DISKS = 300_000
KEPT = timedelta(days=400)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
TODAY = NOW.replace(hour=0)


def in_postgres() -> Work:
    """A day's retention on a server as PostgreSQL is installed, its tables just analysed."""
    from tests.system.postgres.server import running

    if not any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        raise MissingInput("PostgreSQL is not installed: apt-get install postgresql-15")
    with running() as server:
        for setting in (*DURABLE, "autovacuum = off"):
            server.run(f"ALTER SYSTEM SET {setting}")
        server.stop()
        server.start()
        url = server.url(server.database())
        migrate_postgres_store(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "CREATE TEMP TABLE times AS SELECT unnest(%s::bigint[]) AS at", [_list_times()]
            )
            _fill(
                lambda query, *values: connection.execute(query.replace("?", "%s"), values),
                f"(SELECT 'ST4000_' || lpad(n::text, 7, '0') AS device FROM generate_series(1, {DISKS}) AS n) AS disks",
            )
            connection.execute("VACUUM ANALYZE")
        with closing(PostgresStore(url)) as store:
            return _retain(store)


def in_file() -> Work:
    """A day's retention in SQLite."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite"
        SqliteStore(path).close()
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("CREATE TEMP TABLE times(at)")
            connection.executemany("INSERT INTO times VALUES (?)", [(at,) for at in _list_times()])
            connection.execute("CREATE TEMP TABLE disks(device)")
            names = [(f"ST4000_{number:07}",) for number in range(DISKS)]
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO disks VALUES (?)", names)
            _fill(lambda query, *values: connection.execute(query, values), "disks")
            connection.execute("COMMIT")
        with closing(SqliteStore(path)) as store:
            return _retain(store)


def _list_times() -> list[int]:
    """A day of hours that has just become HOURLY old, and a row of each earlier day until one that is KEPT old."""
    hourly = TODAY - HOURLY - DAY
    days = (KEPT - HOURLY).days
    times = [hourly - day * DAY + DAY / 2 for day in range(1, days)] + [
        hourly + hour * HOUR for hour in range(24)
    ]
    return [to_microseconds(at) for at in [TODAY - KEPT - HOUR, *times]]


def _fill(run: Callable[..., Any], disks: str) -> None:
    """Write the rows as they come: by time, all disks of an hour together."""
    reading = scene.reading(0, scene.drives(1)[0], NOW)
    forecaster = BundledForecaster.load()
    (outlook,) = forecaster.compute_outlooks([forecaster.fold(None, [reading])], NOW, {})
    for table, time, document in (
        ("readings", "taken_at", documents.READING.write(reading)),
        ("outlooks", "as_of", documents.OUTLOOK.write(outlook)),
    ):
        columns = f"device, {time}, document"
        run(
            f"INSERT INTO {table}({columns}) SELECT device, at, ? FROM times, {disks} ORDER BY at, device",
            document,
        )
        newest = to_microseconds(NOW)
        run(f"INSERT INTO latest_{table}({columns}) SELECT device, ?, ? FROM {disks}", newest, document)


def _retain(store: Store) -> Work:
    work = Work()
    thin_old_days(store, TODAY - DAY)  # the first one of a store looks at all days
    store.prune(history=TODAY - KEPT - DAY)
    spent = scene.burnt()
    with work.timed():
        dropped = thin_old_days(store, TODAY) + store.prune(history=TODAY - KEPT)
    assert dropped == DISKS * 2 * (23 + 1), dropped
    own, servers, of_goal = work.cpu, scene.burnt() - spent, GOAL_DISKS / DISKS
    work.cpu, work.amount = own + servers, DISKS
    work.note = (
        f"{GOAL_DISKS:,} disks, if it grows linearly: {own * of_goal:,.0f} s CPU of predrain, "
        f"{servers * of_goal:,.0f} s of the database's processes"
    )
    return work


FIGURES = (
    Figure(
        "store: retention of a day", "disks", in_postgres, in_file, "in a file", "300,000 under 10 s of CPU",
        lambda work, _: work.cpu * GOAL_DISKS / work.amount < 10, long=True,
    ),
)  # fmt: skip
