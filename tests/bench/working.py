"""The processor time that a worker takes for a reading, beside the least that any worker would take.

The worker takes readings out of Kafka, judges, stores and scores them, stores the outlooks and commits. The baseline
does the same amount with nothing around it: a client of Kafka, one parse of the JSON, the trees on a batch, and
COPY of the received bytes and of the probabilities in PostgreSQL's binary format. The client is kafka-python, which
predrain uses; the note has the same with confluent-kafka. All take the same readings from servers of their own, after
every drive has been taken over, and only the process itself is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import psycopg

from predrain.data.clock import SystemClock
from predrain.data.log.kafka import Broker, KafkaLog
from predrain.data.log.log_port import Topic
from predrain.data.reading import Smart
from predrain.data.store.postgres_store import PostgresStore
from predrain.data.store.store_schema import to_microseconds
from predrain.features.drive_state import compute_state_matrix, day_of
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.hazard import compute_failure_probabilities, predict_hazards
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.deployed_models import DeployedModels
from predrain.service.processes.worker_process import WorkerProcess
from predrain.service.runtime.python_runtime import tune_runtime
from tests.bench import stage as scene
from tests.bench.figure import Figure, Work
from tests.bench.raw_clients import (
    ConfluentConsumer,
    PythonConsumer,
    RawConsumer,
    copy_rows,
    open_raw_consumer,
)
from tests.bench.streaming import build_looks, build_month, open_stage, save_months, send_all

DRIVES, LOOKS, STEP = 3_000, 6, 500
MOST_TIMES = 3.5
TABLES = (
    "CREATE TABLE raw_readings (device text, at bigint, value bytea, PRIMARY KEY (device, at))",
    "CREATE TABLE raw_outlooks (device text, at bigint, p_7d float8, p_14d float8, p_30d float8, p_90d float8,"
    " PRIMARY KEY (device, at))",
)
COPIES = (
    ("COPY raw_readings FROM STDIN (FORMAT BINARY)", ("text", "int8", "bytea")),
    ("COPY raw_outlooks FROM STDIN (FORMAT BINARY)", ("text", "int8", *("float8",) * 4)),
)


def worked() -> Work:
    """`predrain work`, step by step in this process."""
    with open_stage() as at:
        fleet = scene.drives(DRIVES)
        save_months(at, fleet)
        with (
            closing(KafkaLog(Broker((at.bootstrap,)))) as log,
            closing(PostgresStore(at.database)) as store,
        ):
            models = DeployedModels(BundledForecaster.load, None)
            worker = WorkerProcess(log, store, SystemClock(), models, "bench")

            def step() -> int:
                before = worker.counts["worked"]
                worker.step()
                return worker.counts["worked"] - before

            work = _take_all(at, fleet, step)
            if worker.counts["outlooks"] != DRIVES * LOOKS or worker.counts["dead"]:
                raise ValueError(f"readings were lost: {worker.counts}")
            return work


def worked_raw() -> Work:
    """The baseline, in this process, by the client that predrain uses."""
    fast = _take_all_raw(ConfluentConsumer)
    work = _take_all_raw(PythonConsumer)
    work.note += f"; by confluent-kafka {1e6 * fast.cpu_each:.0f} us"
    return work


def _take_all_raw(client: type[ConfluentConsumer | PythonConsumer]) -> Work:
    with open_stage() as at:
        fleet = scene.drives(DRIVES)
        bundle = Bundle.load(threads=1)
        columns = _build_columns(bundle, fleet)
        with (
            open_raw_consumer(at.bootstrap, "predrain.readings", client) as consumer,
            psycopg.connect(at.database) as connection,
        ):
            for table in TABLES:
                connection.execute(table.encode())
            connection.commit()
            return _take_all(at, fleet, lambda: _take_raw(consumer, connection, bundle, columns))


def _take_raw(consumer: RawConsumer, connection: Any, bundle: Bundle, columns: Any) -> int:
    """Take one batch; return how many readings it had. columns: (STEP or more, columns of the trees)."""
    records = [value for _, value in consumer.poll_records(STEP)]
    if not records:
        return 0
    keys = []
    for value in records:
        body = msgspec.json.decode(value)["body"]
        keys.append((body["device"], to_microseconds(datetime.fromisoformat(body["taken_at"]))))
    hazard = predict_hazards(bundle.booster, columns[: len(records)], 1)
    chances = compute_failure_probabilities(hazard).tolist()
    tables = (
        ((*key, value) for key, value in zip(keys, records, strict=True)),
        ((*key, *row) for key, row in zip(keys, chances, strict=True)),
    )
    for (statement, types), rows in zip(COPIES, tables, strict=True):
        copy_rows(connection, statement, types, rows)
    connection.commit()
    consumer.commit()
    return len(records)


def _build_columns(bundle: Bundle, fleet: list[Smart]) -> Any:
    """Return what the trees read of these drives after a month: (STEP, columns)."""
    states = [build_month(number, smart) for number, smart in enumerate(fleet[:STEP])]
    x = compute_state_matrix(states, day_of(scene.NOW))
    models = np.array([state.face.model for state in states], dtype=object)
    return bundle.build_matrix(x, models)


def _take_all(at: scene.Stage, fleet: list[Smart], step: Callable[[], int]) -> Work:
    """Take all readings with `step`. The first reading of each drive, with which it is taken over, is not counted."""
    tune_runtime()
    looks, work = build_looks(fleet, LOOKS), Work()
    _drain(step, send_all(at, Topic.READINGS, islice(looks, DRIVES)))
    left = send_all(at, Topic.READINGS, looks)
    servers = scene.burnt()
    with work.timed():
        _drain(step, left)
    work.amount = left
    each = 1e6 / left
    work.note = f"{work.cpu * each:.0f} us CPU a reading; broker and database {(scene.burnt() - servers) * each:.0f} us"
    return work


def _drain(step: Callable[[], int], left: int) -> None:
    end = time.monotonic() + scene.PATIENCE
    while left > 0:
        left -= step()
        if time.monotonic() > end:
            raise TimeoutError(f"{left:,} readings are left after {scene.PATIENCE:.0f} s")


FIGURES = (
    Figure(
        "worker: processor a reading", "readings", worked, worked_raw,
        "kafka-python, JSON parsed, trees, COPY", f"at most {MOST_TIMES} times", most_times=MOST_TIMES,
    ),
)  # fmt: skip
