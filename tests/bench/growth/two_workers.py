"""Kafka, PostgreSQL and two workers at one size, and a process for the page; all of it on this machine."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from predrain.data.log.kafka import Broker, KafkaLog
from predrain.data.log.log_port import Log, Record, Topic
from predrain.data.store.postgres_store import PostgresStore
from predrain.data.store.store_schema import to_microseconds
from tests.bench import stage as scene
from tests.bench.growth.load_plan import LoadPlan, Report, Values, fill_store, send_at_once
from tests.bench.growth.measures import KEPT_READINGS, GrowthSeries, MeasureName, SizeFigures
from tests.bench.growth.probing import (
    GrowthFailed,
    MemorySamples,
    ProcessProbe,
    compute_patience,
    sample_memory,
    wait_for,
)
from tests.bench.growth.service_control import (
    NO_RATES,
    DeviceQuestions,
    ask_for_devices,
    end_process,
    make_environment,
    read_end,
    read_page,
    start_service,
)
from tests.bench.loading import StampedEnvelopes
from tests.bench.stored_bytes import measure_tables

WORKERS = 2
TABLES = ("readings", "outlooks")
BATCH = 500
TICK_SECONDS = 0.1


def measure_two_workers(disks: int, plan: LoadPlan, report: Report) -> SizeFigures:
    """Measure one size. Raises GrowthFailed, and MissingInput without Java or PostgreSQL; what was started has ended
    then, and its files are gone.
    """
    with tempfile.TemporaryDirectory(prefix="predrain-growth-") as folder:
        report("starting Kafka and PostgreSQL")
        with scene.stage(Path(folder)) as at, closing(KafkaLog(Broker((at.bootstrap,)))) as log:
            return _TwoWorkers(at, log, disks, plan, report).measure()


class _TwoWorkers:
    def __init__(self, at: scene.Stage, log: Log, disks: int, plan: LoadPlan, report: Report) -> None:
        self._at, self._log, self._disks, self._plan, self._report = at, log, disks, plan, report
        self._patience, self._sent = compute_patience(disks), 0
        self._envelopes = StampedEnvelopes(disks)

    def measure(self) -> SizeFigures:
        self._report("filling the store")
        with closing(PostgresStore(self._at.database)) as store:
            fill_store(store, scene.drives(self._disks))
        bytes_before, rows_before = measure_tables(self._at.database, *TABLES), self._count_outlooks()
        starts = list[Values]()
        for number in range(1, self._plan.restarts + 1):
            self._report(f"start {number} of {self._plan.restarts}")
            with self._start_workers() as workers:
                starts.append(self._time_start(workers))
                self._await_all()
                if number == self._plan.restarts:
                    loaded = self._load(ProcessProbe(tuple(one.pid for one in workers)))
        rows = self._count_outlooks() - rows_before
        values = min(starts, key=lambda start: start[MeasureName.SCORE]) | loaded
        grown = measure_tables(self._at.database, *TABLES) - bytes_before
        values[MeasureName.YEAR] = grown / rows * KEPT_READINGS
        return SizeFigures(GrowthSeries.TWO_WORKERS, self._disks, values)

    def _time_start(self, workers: Sequence[subprocess.Popen[bytes]]) -> Values:
        """Return the seconds until a reading is scored that was sent when the workers were started."""
        began, probe = time.monotonic(), ProcessProbe(tuple(one.pid for one in workers))
        since = to_microseconds(datetime.now(UTC))
        self._send(BATCH)

        def is_scored() -> bool:
            if ended := [one.returncode for one in workers if one.poll() is not None]:
                errors = read_end(self._at.folder / "workers.errors")
                raise GrowthFailed(f"a worker ended with {ended[0]}:\n{errors}")
            return bool(self._ask(f"SELECT count(*) FROM latest_outlooks WHERE as_of >= {since}"))

        wait_for("the first score", is_scored, self._patience)
        return {MeasureName.SCORE: probe.burnt(), MeasureName.SCORE_WALL: time.monotonic() - began}

    def _load(self, probe: ProcessProbe) -> Values:
        count = self._plan.count_at_once(self._disks)
        self._report(f"{count:,} readings at once")
        spent, servers, before = probe.burnt(), self._burnt_by_servers(probe), self._sent
        sent = send_at_once(
            count, lambda: self._send(BATCH), lambda: self._count_scored() - before, self._patience
        )
        values: Values = {
            MeasureName.READING: (probe.burnt() - spent) / sent * 1e6,
            MeasureName.SERVERS: (self._burnt_by_servers(probe) - servers) / sent * 1e6,
        }
        (self._at.folder / "page").mkdir()
        with start_service(
            self._at.folder / "page", "serve", self._disks, NO_RATES + self._read_tables()
        ) as page:
            wait_for("readyz of the page", page.is_ready, self._patience)
            page.give_view()
            self._report("the page's first data")
            values |= read_page(page)
            seconds, rate = self._plan.steady_seconds, self._plan.rate
            self._report(f"{rate:,} readings a second for {seconds:g} s, and GET devices")
            with sample_memory(probe) as samples, ask_for_devices(page) as questions:
                self._send_steadily(seconds, rate)
            values[MeasureName.PAGE_MEMORY] = page.probe.largest_megabytes()
            values |= _describe_steady(probe, samples, questions)
        self._await_all()
        return values

    def _send(self, count: int) -> int:
        some = self._envelopes.stamp_next(self._sent, count)
        self._log.append(Topic.READINGS, [Record(device, body) for device, body in some])
        self._sent += count
        return count

    def _send_steadily(self, seconds: float, rate: int) -> None:
        began, before = time.monotonic(), self._sent
        while (passed := time.monotonic() - began) < seconds:
            due = int(passed * rate) - (self._sent - before)
            if due > 0:
                self._send(due)
            time.sleep(TICK_SECONDS)

    def _await_all(self) -> None:
        wait_for("the scoring of all", lambda: self._count_scored() >= self._sent, self._patience, pause=0.5)

    def _count_scored(self) -> int:
        """Return the readings that were scored. PostgreSQL counts them itself, some seconds late."""
        return self._ask("SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'outlooks'") - self._disks

    def _count_outlooks(self) -> int:
        return self._ask("SELECT count(*) FROM outlooks")

    def _ask(self, question: str) -> int:
        with psycopg.connect(self._at.database, autocommit=True) as connection:
            (count,) = connection.execute(question.encode()).fetchone() or (0,)
        return int(count or 0)

    def _burnt_by_servers(self, workers: ProcessProbe) -> float:
        """Return the processor seconds of Kafka and PostgreSQL."""
        return scene.burnt() - workers.burnt() - time.process_time()

    def _read_tables(self) -> str:
        """Return the settings of Kafka and PostgreSQL without `[service]`, which each process has of its own."""
        return "[store]" + self._at.config.read_text().partition("[store]")[2]

    @contextmanager
    def _start_workers(self) -> Iterator[list[subprocess.Popen[bytes]]]:
        predrain = Path(sys.executable).parent / "predrain"
        with ExitStack() as closings:
            errors = closings.enter_context((self._at.folder / "workers.errors").open("wb"))
            workers = list[subprocess.Popen[bytes]]()
            for _ in range(WORKERS):
                command = [predrain, "work", "--config", self._at.config]
                workers.append(subprocess.Popen(command, stderr=errors, env=make_environment()))
                closings.callback(end_process, workers[-1])
            yield workers


def _describe_steady(probe: ProcessProbe, samples: MemorySamples, questions: DeviceQuestions) -> Values:
    return {
        MeasureName.GROWTH: samples.megabytes_per_minute,
        MeasureName.STEADY: samples.steady_megabytes,
        MeasureName.SHARED_OUT: probe.proportional_megabytes(),
        MeasureName.PEAK: probe.largest_megabytes("VmHWM"),
        MeasureName.DEVICES_MEDIAN: questions.quantile_ms(0.5),
        MeasureName.DEVICES_SLOWEST: questions.quantile_ms(0.99),
    }
