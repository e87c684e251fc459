"""The bytes that a worker remembers of a drive, measured on real drives with 90 days of daily readings each."""

from __future__ import annotations

import tempfile
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby
from pathlib import Path

import duckdb

from predrain.data.clock import SystemClock
from predrain.data.ids import HostName
from predrain.data.importing import backblaze_import
from predrain.data.log.log_port import Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.reading import Reading
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import Checkpoint
from predrain.features.drive_state import DriveState
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.newest_outlooks import NewestOutlookSummaries
from predrain.service.forecasting.worker import ScoringWorker
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.outlook_announcements import Announcements
from tests.bench.forecasting import LAST, half_year

DAYS = 90
BATCH = 500
WARM = 200
"""Drives that are taken first and not counted: what is made once belongs to none."""


def remembered(drives: int) -> dict[str, float]:
    """Bytes a drive by what they are, of a worker that has had `drives` of them. Raises MissingInput."""
    with tempfile.TemporaryDirectory() as folder:
        store, log, clock = SqliteStore(Path(folder) / "store.db"), MemoryLog(), SystemClock()
        forecaster, sender = BundledForecaster.load(), RecordSender("bench", clock)
        gist = NewestOutlookSummaries()
        worker = ScoringWorker(log, store, clock, forecaster, gist, Announcements(), sender)
        last: list[Record] = []
        packed = 0
        for history in histories(drives, Path(folder)):
            *past, newest = history
            state = forecaster.fold(None, past)
            held = forecaster.pack(state)
            packed += len(held)
            store.add_readings(past[-1:])
            store.save_checkpoints([Checkpoint(newest.device, forecaster.layout, past[-1].taken_at, held)])
            last.append(Record(newest.device, sender.encode_envelope(newest)))
        count = len(last) - WARM
        _taken(worker, log, last[:WARM])
        del last[:WARM]
        tracemalloc.start()
        _taken(worker, log, last)
        whole, _ = tracemalloc.get_traced_memory()
        found, before = {"in all": whole / count, "state, packed": packed / (count + WARM)}, whole
        for name, kept in (("state", worker._states), ("gist of its outlook", gist._outlooks)):
            kept.clear()
            now, _ = tracemalloc.get_traced_memory()
            found[name], before = (before - now) / count, now
        tracemalloc.stop()
        store.close()
        return found


def histories(drives: int, folder: Path) -> Iterator[list[Reading]]:
    """Daily readings of real drives that were read on each of the last 90 days, drive by drive."""
    since, table = LAST - timedelta(days=DAYS - 1), folder / "recent.parquet"
    connection = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": "1GB"})
    connection.execute("SET enable_progress_bar = false")
    connection.execute(
        f"COPY (WITH recent AS (SELECT * FROM '{half_year()}' WHERE date BETWEEN DATE '{since}' AND DATE '{LAST}'), "
        f"steady AS (SELECT serial_number AS name FROM recent GROUP BY 1 HAVING count(*) = {DAYS} "
        f"ORDER BY hash(name) LIMIT {drives}) "
        f"SELECT recent.* FROM recent JOIN steady ON serial_number = name ORDER BY name, date) TO '{table}'"
    )
    (part,) = backblaze_import.list_backblaze_import_parts([table], HostName("bench"))
    readings = (item for item in part.items(0) if isinstance(item, Reading))
    for _, of_drive in groupby(readings, key=lambda reading: reading.device):
        yield list(of_drive)


def _taken(worker: ScoringWorker[DriveState], log: MemoryLog, records: list[Record]) -> None:
    for begin in range(0, len(records), BATCH):
        log.append(Topic.READINGS, records[begin : begin + BATCH])
        while worker.step().taken:
            pass
    for topic in Topic:
        log.trim(topic, 1 << 62)
