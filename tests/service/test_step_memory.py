"""The memory that one step of the worker needs beside its remembered state is bounded, however many readings wait."""

from __future__ import annotations

import tracemalloc
from datetime import timedelta

import pytest

from predrain.data.log.log_port import Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.fleet.fleet import Fleet
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.worker import ScoringWorker
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.outlook_announcements import Announcements
from tests.bench.stage import NOW, drives, reading
from tests.service.conftest import SetClock

DISKS = 2_500
MOST_BYTES = 16 << 20


@pytest.mark.slow
def test_a_step_that_finds_thousands_of_readings_needs_less_than_16_mb_for_a_moment() -> None:
    clock, log, store = SetClock(NOW), MemoryLog(), SqliteStore(":memory:")
    sender, found = RecordSender("test", clock), drives(DISKS)
    worker = ScoringWorker(log, store, clock, BundledForecaster.load(), Fleet(store), Announcements(), sender)
    worker.rebuild()
    peaks = []
    for hour in range(2):
        at = NOW - timedelta(hours=2 - hour)
        readings = (reading(number, smart, at, hour) for number, smart in enumerate(found))
        log.append(Topic.READINGS, [Record(one.device, sender.encode_envelope(one)) for one in readings])
        if not hour:
            while worker.step().taken:
                pass
    tracemalloc.start()
    try:
        while True:
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            if not worker.step().taken:
                break
            peaks.append(tracemalloc.get_traced_memory()[1] - held)
    finally:
        tracemalloc.stop()
        store.close()
    assert max(peaks) < MOST_BYTES
