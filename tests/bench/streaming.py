"""Figures of the stream: readings and latencies out of Kafka, judged, scored and kept in PostgreSQL.

All of it shares this machine: workers, broker and database; `CPU` is what all of them burnt together.
Readings: six thousand drives with a month of history each, ten looks late, as after a night's outage.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from predrain.data.clock import SystemClock
from predrain.data.log.kafka import Broker, KafkaLog
from predrain.data.log.log_port import Record, Topic
from predrain.data.reading import Smart
from predrain.data.store.postgres_store import PostgresStore
from predrain.data.store.store_port import Checkpoint
from predrain.features import pack_drive_state, replay_readings
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.latency_ingest import LatencyIngest
from tests.bench import stage as scene
from tests.bench.figure import Figure, Work
from tests.bench.raw_clients import copy_rows, open_raw_consumer
from tests.bench.stage import NOW, Stage, stage

WORKERS = 2
DRIVES, LOOKS, MONTH = 6_000, 10, 31
HOSTS, MINUTES = 100, 60
A_SECOND, SECONDS, TICK = 1_000, 30, 0.05
STEP = 500
RAW_TABLE = "CREATE TABLE raw (key text, at timestamptz, value bytea)"
"""Without a key: a reading that comes twice while the consumers share out the partitions would end a COPY."""
RAW_COPY, RAW_TYPES = "COPY raw FROM STDIN (FORMAT BINARY)", ("text", "timestamptz", "bytea")


def worked() -> Work:
    """`predrain work` twice over readings that wait: judged, kept, scored, outlooks kept, committed."""
    with open_stage() as at:
        fleet = scene.drives(DRIVES)
        save_months(at, fleet)
        total = send_all(at, Topic.READINGS, build_looks(fleet))
        with _crew(at):
            return scene.passed(lambda: _rows(at, "outlooks"), total)


def worked_raw() -> Work:
    """Two processes with the raw clients: polled by confluent-kafka, parsed by msgspec, copied, committed."""
    with open_stage() as at:
        total = send_all(at, Topic.READINGS, build_looks(scene.drives(DRIVES)))
        with _raw_crew(at):
            return scene.passed(lambda: _rows(at, "raw"), total)


def soon() -> Work:
    """Measure the 99th percentile of the time from a reading's sender to the commit of its outlook."""
    with open_stage("track_commit_timestamp = on") as at:
        fleet = scene.drives(DRIVES)
        save_months(at, fleet)
        with _crew(at):
            total = _paced(at, fleet, lambda: _rows(at, "outlooks"))
        return _waited(at, "outlooks", "to_timestamp(as_of / 1e6)", total)


def soon_raw() -> Work:
    """The same by the raw clients, from the sender to its row's commit."""
    with open_stage("track_commit_timestamp = on") as at:
        with _raw_crew(at):
            total = _paced(at, scene.drives(DRIVES), lambda: _rows(at, "raw"))
        return _waited(at, "raw", "at", total)


def kept() -> Work:
    """`LatencyIngest.step`, one process: read, judged, kept, committed."""
    with open_stage() as at:
        clock = SystemClock()
        with (
            closing(KafkaLog(Broker((at.bootstrap,)))) as log,
            closing(PostgresStore(at.database)) as store,
        ):
            latencies = LatencyIngest(log, store, clock, RecordSender("bench", clock))
            return _drained(at, lambda: latencies.step(STEP).taken)


def kept_raw() -> Work:
    """The raw client, one process: the same batches polled and committed, nothing done with them."""
    with open_stage() as at, open_raw_consumer(at.bootstrap, "predrain.latency") as consumer:

        def step() -> int:
            found = consumer.poll_records(STEP)
            if found:
                consumer.commit()
            return len(found)

        return _drained(at, step)


def remembered() -> Work:
    """Measure the packed state that a worker holds of a drive with a month of history, in kB."""
    states = [build_month(number, smart) for number, smart in enumerate(scene.drives(60))]
    work = Work(note="the state alone, packed")
    with work.timed():
        sizes = [len(pack_drive_state(state)) for state in states]
    work.amount = sum(sizes) / len(sizes) / 1_000
    return work


def build_month(number: int, smart: Smart) -> Any:
    days = range(-MONTH, 0)
    return replay_readings(
        scene.reading(number, smart, NOW + timedelta(days=day, hours=-LOOKS), 24 * day) for day in days
    )


def save_months(at: Stage, fleet: list[Smart]) -> None:
    """A month of history of every drive, as workers before these would have left it."""
    forecaster, months = BundledForecaster.load(), {}
    checkpoints = []
    for number, smart in enumerate(fleet):
        kind = (smart.identity.model, number % 40 == 0)
        if kind not in months:
            months[kind] = build_month(number, smart)
        device = scene.reading(number, smart, NOW).device
        state = replace(months[kind], device=device)
        checkpoints.append(Checkpoint(device, forecaster.layout, state.taken_at, forecaster.pack(state)))
    with closing(PostgresStore(at.database)) as store:
        store.save_checkpoints(checkpoints)


def build_looks(fleet: list[Smart], looks: int = LOOKS) -> Iterator[Record]:
    """Build the readings that the hosts would have sent in so many hours in which the workers stood still."""
    sender = RecordSender("hosts", SystemClock())
    for look in range(looks):
        for number, smart in enumerate(fleet):
            begun = NOW + timedelta(hours=look - looks, milliseconds=number)
            reading = scene.reading(number, smart, begun, look)
            yield Record(reading.device, sender.encode_envelope(reading))


def _batches() -> Iterator[Record]:
    sender = RecordSender("hosts", SystemClock())
    for minute in range(MINUTES):
        for host in range(HOSTS):
            batch = scene.batch(host, minute)
            yield Record(batch.host, sender.encode_envelope(batch))


def send_all(at: Stage, topic: Topic, records: Iterator[Record]) -> int:
    """All of them into the log; returns how many."""
    count = 0
    with closing(KafkaLog(Broker((at.bootstrap,)))) as log:
        while some := list(islice(records, 2_000)):
            log.append(topic, some)
            count += len(some)
    return count


def _paced(at: Stage, fleet: list[Smart], done: Callable[[], int]) -> int:
    """A_SECOND readings a second, each taken as it is sent, until all are `done`; returns how many."""
    sender, each, sent = RecordSender("hosts", SystemClock()), round(A_SECOND * TICK), 0

    def send(count: int) -> None:
        now = datetime.now(UTC)
        looks = [
            scene.reading(n % DRIVES, fleet[n % DRIVES], now, n // DRIVES) for n in range(sent, sent + count)
        ]
        log.append(Topic.READINGS, [Record(one.device, sender.encode_envelope(one)) for one in looks])

    with closing(KafkaLog(Broker((at.bootstrap,)))) as log:
        begun = None
        while sent < A_SECOND * SECONDS:
            send(each)
            sent += each
            if begun is None:  # the workers have their share
                _until(lambda: done() >= each)
                begun = time.monotonic() - TICK
            time.sleep(max(0.0, begun + sent / A_SECOND - time.monotonic()))
        _until(lambda: done() >= sent)
    return sent


def _until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + scene.PATIENCE
    while not done():
        if time.monotonic() > end:
            raise TimeoutError("the workers do not come to an end")
        time.sleep(0.2)


def _waited(at: Stage, table: str, sent: str, total: int) -> Work:
    question = (
        f"SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin) - {sent}) FROM {table} ORDER BY {sent}"
    )
    with psycopg.connect(at.database) as connection:
        waits = [float(wait) for (wait,) in connection.execute(question.encode())][A_SECOND:]
    if len(waits) != total - A_SECOND:
        raise ValueError(f"{len(waits):,} rows are not {total:,}")
    half = scene.quantile(waits, 0.5)
    return Work(1, scene.quantile(waits, 0.99), note=f"half of them within {half:.2f} s; {A_SECOND:,}/s")


def _drained(at: Stage, step: Callable[[], int]) -> Work:
    """All batches, from when the group has been joined, for the first of them, and nothing else was sent."""
    batches = _batches()
    left = send_all(at, Topic.LATENCY, islice(batches, 1))
    while left > 0:
        left -= step()
    left = send_all(at, Topic.LATENCY, batches)
    work, burnt = Work(), scene.burnt()
    with work.timed():
        while left > 0:
            taken = step()
            left -= taken
            work.amount += taken * scene.OSDS_A_HOST
    work.cpu += scene.burnt() - burnt
    return work


@contextmanager
def open_stage(*settings: str) -> Iterator[Stage]:
    with (
        tempfile.TemporaryDirectory(prefix="predrain-bench-") as folder,
        stage(Path(folder), *settings) as at,
    ):
        yield at


@contextmanager
def _crew(at: Stage) -> Iterator[None]:
    predrain = Path(sys.executable).parent / "predrain"
    with (at.folder / "said").open("wb") as said:
        crew = [
            subprocess.Popen([predrain, "work", "--config", at.config], stderr=said) for _ in range(WORKERS)
        ]
        try:
            yield
        finally:
            for worker in crew:
                worker.kill()
                worker.wait()


@contextmanager
def _raw_crew(at: Stage) -> Iterator[None]:
    with psycopg.connect(at.database) as connection:
        connection.execute(RAW_TABLE.encode())
    fork = multiprocessing.get_context("spawn")
    crew = [fork.Process(target=_raw, args=(at.bootstrap, at.database), daemon=True) for _ in range(WORKERS)]
    for one in crew:
        one.start()
    try:
        yield
    finally:
        for one in crew:
            one.kill()
            one.join()


def _raw(bootstrap: str, database: str) -> None:
    """Take readings for ever: the least that any program would do with them."""
    with (
        open_raw_consumer(bootstrap, "predrain.readings") as consumer,
        psycopg.connect(database) as connection,
    ):
        while True:
            rows = [
                (key.decode(), datetime.fromisoformat(msgspec.json.decode(value)["body"]["taken_at"]), value)
                for key, value in consumer.poll_records(1_000)
            ]
            if rows:
                copy_rows(connection, RAW_COPY, RAW_TYPES, rows)
                connection.commit()
                consumer.commit()


def _rows(at: Stage, table: str) -> int:
    with psycopg.connect(at.database) as connection:
        (count,) = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() or (0,)
        return int(count)


FIGURES = (
    Figure(
        "stream: readings, two workers", "readings", worked, worked_raw,
        "confluent-kafka, JSON parsed, COPY", "5,000 a second on 2 cores", lambda work, _: work.rate >= 5_000,
    ),
    Figure(
        "stream: reading to outlook, p99", "reading", soon, soon_raw,
        "raw clients, to its row", "under 2 s", lambda work, _: work.seconds < 2,
    ),
    Figure(
        "stream: latencies, one worker", "OSD-samples", kept, kept_raw,
        "raw client, nothing done", "50,000 a second", lambda work, _: work.rate >= 50_000,
    ),
    Figure(
        "stream: a drive's state", "kB", remembered, remembered,
        "itself", "under 10 kB", lambda work, _: work.amount < 10,
    ),
)  # fmt: skip
