"""`python -m tests.bench.stored_bytes`: bytes on disk of a reading, its outlook and a host's latencies, in Kafka,
PostgreSQL and in one process's files. Real disks' answers, sent as hosts of twenty disks send them; some minutes.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import psycopg

from predrain.data.clock import SystemClock
from predrain.data.log.kafka import Broker, KafkaLog
from predrain.data.log.log_port import Log, Record, Topic
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.store.postgres_store import PostgresStore
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import Store
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.newest_outlooks import NewestOutlookSummaries
from predrain.service.forecasting.worker import ScoringWorker
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.latency_ingest import LatencyIngest
from predrain.service.streams.outlook_announcements import Announcements
from tests.bench import stage as scene
from tests.bench.figure import MissingInput

DISKS, LOOKS = 1_000, 6
A_HOST = 20
MINUTES = 60

Bytes = Callable[[], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print; 1 where something is missing."""
    argparse.ArgumentParser(prog="python -m tests.bench.stored_bytes", description=__doc__).parse_args(
        arguments
    )
    with tempfile.TemporaryDirectory(prefix="predrain-sized-") as folder:
        try:
            print("\n".join([*shared(Path(folder)), *alone(Path(folder))]))
        except MissingInput as missing:
            print(missing, file=sys.stderr)
            return 1
    return 0


def shared(folder: Path) -> Iterator[str]:
    """Lines about Kafka and PostgreSQL."""
    with scene.stage(folder) as at:

        def topic(name: str) -> Bytes:
            logs = folder / "kafka" / "data"
            return lambda: sum(file.stat().st_size for file in logs.glob(f"predrain.{name}-*/*.log"))

        def tables(*names: str) -> Bytes:
            return lambda: measure_tables(at.database, *names)

        with closing(KafkaLog(Broker((at.bootstrap,)))) as log, closing(PostgresStore(at.database)) as store:
            yield from measured(
                ("Kafka", topic("readings"), topic("latency")),
                ("PostgreSQL", tables("readings", "outlooks"), tables("host_latency")),
                log,
                store,
            )


def measure_tables(database: str, *names: str) -> int:
    """The bytes of these tables with their indexes, after a full vacuum."""
    question = " + ".join(f"pg_total_relation_size('{name}')" for name in names)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"VACUUM FULL {', '.join(names)}".encode())
        (found,) = connection.execute(f"SELECT {question}".encode()).fetchone() or (0,)
    return int(found)


def alone(folder: Path) -> Iterator[str]:
    """Lines about the files of one process."""
    logs, stores = folder / "log.sqlite", folder / "store.sqlite"

    def file(path: Path) -> Bytes:
        return lambda: measure_file(path)

    with closing(SqliteLog(logs)) as log, closing(SqliteStore(stores)) as store:
        yield from measured(
            ("log's file", file(logs), file(logs)), ("store's file", file(stores), file(stores)), log, store
        )


def measure_file(path: Path) -> int:
    """The bytes of a file of SQLite, with all that was in its write-ahead log."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


def measured(
    logged: tuple[str, Bytes, Bytes], kept: tuple[str, Bytes, Bytes], log: Log, store: Store
) -> Iterator[str]:
    """Send, work, and say what each came to."""
    clock, sender = SystemClock(), RecordSender("hosts", SystemClock())
    fleet, now = scene.drives(DISKS), clock.now()
    worker = ScoringWorker(
        log, store, clock, BundledForecaster.load(), NewestOutlookSummaries(), Announcements(), sender
    )

    def looked(look: int) -> None:
        for begin in range(0, DISKS, A_HOST):
            readings = [
                scene.reading(number, fleet[number], now + timedelta(hours=look - LOOKS), look)
                for number in range(begin, begin + A_HOST)
            ]
            log.append(Topic.READINGS, [Record(one.device, sender.encode_envelope(one)) for one in readings])
        done = 0
        while done < DISKS:
            done += worker.step().taken

    looked(0)  # what is kept once of a disk, however often it is read
    before = logged[1](), kept[1]()
    for look in range(1, LOOKS):
        looked(look)
    count = DISKS * (LOOKS - 1)
    yield told(logged[0], "a reading", logged[1]() - before[0], count)
    yield told(kept[0], "a reading with its outlook", kept[1]() - before[1], count)

    before, count = (logged[2](), kept[2]()), DISKS // A_HOST * MINUTES
    for minute in range(MINUTES):
        for host in range(DISKS // A_HOST):
            batch = scene.batch(host, minute, A_HOST)
            log.append(Topic.LATENCY, [Record(batch.host, sender.encode_envelope(batch))])
    latencies, done = LatencyIngest(log, store, clock, sender), 0
    while done < count:
        done += latencies.step().taken
    yield told(logged[0], f"a host's minute, {A_HOST} OSDs", logged[2]() - before[0], count)
    yield told(kept[0], f"a host's minute, {A_HOST} OSDs", kept[2]() - before[1], count)
    if isinstance(store, PostgresStore):  # a file keeps the room of what went, and fills it again
        rows = count - store.merge_old_latencies(clock.now())
        yield told(kept[0], f"its ten minutes, {A_HOST} OSDs", kept[2]() - before[1], rows)


def told(where: str, what: str, size: int, count: int) -> str:
    """A line."""
    return f"{where:13} {what:30} {size / count:6,.0f} bytes"


if __name__ == "__main__":
    sys.exit(main())
