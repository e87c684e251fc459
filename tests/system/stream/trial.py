"""One fleet's readings through a single process, and through workers that are killed and added while they run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from random import Random

import psycopg

from predrain.data.clock import SystemClock
from predrain.data.log.kafka import Broker, KafkaLog, TopicShape, ensure_topics
from predrain.data.log.log_port import Log, Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.reading import Reading
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import Store
from predrain.service.fleet.fleet import Fleet
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.worker import ScoringWorker
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.outlook_announcements import Announcements
from tests.system.kafka.broker import Broker as KafkaServer
from tests.system.stream.alike import Told, announced, differing, disordered
from tests.system.stream.crew import Crew
from tests.system.stream.fleet import readings

PARTITIONS = 12
BATCH = 2_000


@dataclass(frozen=True)
class Trial:
    """The outcome of a trial. Times are in seconds."""

    readings: int
    """Different ones; some were sent twice."""
    unlike: dict[str, list[str]]
    """Devices by the table in which both stores differ on them: none should."""
    told: tuple[Told, Told]
    """The announcements of the single process, and those of the workers."""
    exits: list[int]
    """Of the workers that were ended, not killed."""
    alone: tuple[float, float]
    """As they went by, and of the processor."""
    sent: float
    shared: tuple[float, float]
    """As `alone`, the processor's of all workers, without Kafka and PostgreSQL."""
    steps: list[str]
    """The actions on the workers, each with its time."""
    peaks: list[int]
    """Bytes of RSS, of every worker."""

    @property
    def alike(self) -> bool:
        """Return True if both ways came to the same result."""
        return not self.unlike and self.told[0] == self.told[1]


def tried(kafka: KafkaServer, database: str, folder: Path, drives: int, days: int) -> Trial:
    """Both ways. Two workers; one is killed with `kill -9`, two are added, a third is; another is killed, one is added.

    Raises AssertionError when the workers do not come to an end.
    """
    with ExitStack() as closing:
        began, burnt = time.monotonic(), time.process_time()
        expected = SqliteStore(folder / "alone.db")
        closing.callback(expected.close)
        told = announced(by_one(expected, readings(drives, days)), disordered(readings(drives, days)))
        alone = time.monotonic() - began, time.process_time() - burnt

        broker = Broker((kafka.address(),), prefix="many.")
        ensure_topics(
            broker, dict.fromkeys(Topic, TopicShape(PARTITIONS, timedelta(days=1))), replicas=1, in_sync=1
        )
        log = KafkaLog(broker)
        closing.callback(log.close)
        began = time.monotonic()
        count = sent(log, readings(drives, days))
        were_sent = time.monotonic() - began

        crew = closing.enter_context(Crew(folder, settings_file(folder, kafka, database, "many.")))
        began = time.monotonic()
        random, stored = Random(drives), Rows(database)

        def once(share: float, said: str, *does: Callable[[], object]) -> None:
            """Wait until this share of the readings is stored; then note the step and carry it out."""
            crew.until(lambda: stored.readings >= share * count, lambda: stored.readings)
            steps.append(f"{time.monotonic() - began:5.0f} s, {stored.readings:,} stored: {said}")
            for one in does:
                one()

        steps: list[str] = []
        once(0, "two begin", lambda: crew.begin(2))
        once(0.05, "one is killed, two begin", lambda: crew.kill(random.randrange(2)), lambda: crew.begin(2))
        once(0.25, "one begins", lambda: crew.begin(1))
        once(0.5, "one is killed, one begins", lambda: crew.kill(random.randrange(4)), lambda: crew.begin(1))
        once(1, "all")
        crew.until(lambda: stored.outlooks == count, lambda: stored.outlooks)
        shared = time.monotonic() - began
        exits = crew.end()
        unlike = differing(f"sqlite:///{folder / 'alone.db'}", database)
        both = (told, announced(log, disordered(readings(drives, days))))
        return Trial(count, unlike, both, exits, alone, were_sent, (shared, crew.burnt), steps, crew.peaks)


def by_one(store: Store, found: Iterable[Reading]) -> Log:
    """A single process's worker takes them as they come, into `store`; returns its log."""
    log, clock = MemoryLog(), SystemClock()
    worker = ScoringWorker(
        log,
        store,
        clock,
        BundledForecaster.load(),
        Fleet(store),
        Announcements(),
        RecordSender("alone", clock),
    )
    worker.rebuild()
    sender = RecordSender("hosts", clock)
    for batch in batches(found):
        log.append(Topic.READINGS, [Record(one.device, sender.encode_envelope(one)) for one in batch])
        while worker.step().taken:
            pass
        log.trim(Topic.READINGS, sys.maxsize)
    return log


def sent(log: Log, found: Iterable[Reading]) -> int:
    """Puts them into the log; returns how many different ones there are."""
    sender, seen = RecordSender("hosts", SystemClock()), set()
    for batch in batches(found):
        log.append(Topic.READINGS, [Record(one.device, sender.encode_envelope(one)) for one in batch])
        seen.update((one.device, one.taken_at) for one in batch)
    return len(seen)


def with_topics(kafka: KafkaServer, prefix: str) -> KafkaLog:
    """A log of its own on that server."""
    broker = Broker((kafka.address(),), prefix=prefix)
    ensure_topics(
        broker, dict.fromkeys(Topic, TopicShape(PARTITIONS, timedelta(days=1))), replicas=1, in_sync=1
    )
    return KafkaLog(broker)


def batches(found: Iterable[Reading]) -> Iterator[list[Reading]]:
    rest = iter(found)
    while batch := list(islice(rest, BATCH)):
        yield batch


def settings_file(folder: Path, kafka: KafkaServer, database: str, prefix: str) -> Path:
    """Settings of a worker over both."""
    config = folder / "predrain.toml"
    config.write_text(
        f'[service]\nstate = "{folder / "state"}"\nport = 0\n[store]\nurl = "{database}"\n'
        f'[kafka]\nbootstrap_servers = ["{kafka.address()}"]\nprefix = "{prefix}"\n'
        "replication_factor = 1\nmin_insync_replicas = 1\n"
    )
    return config


class Rows:
    """How many rows a database's store has; looked up again only now and then, since it costs the server work."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._known: dict[str, tuple[int, float]] = {}

    @property
    def readings(self) -> int:
        return self._count("readings")

    @property
    def outlooks(self) -> int:
        return self._count("outlooks")

    def _count(self, table: str) -> int:
        count, until = self._known.get(table, (0, 0.0))
        began = time.monotonic()
        if began < until:
            return count
        with psycopg.connect(self._database) as connection:
            (count,) = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() or (0,)
        now = time.monotonic()
        self._known[table] = count, now + 10 * (now - began)
        return int(count)
