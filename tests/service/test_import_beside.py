"""A past that is imported while workers score is in the next outlook, even if a worker remembers the drive."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from predrain.data.importing import ImportPart, Item
from predrain.data.log.memory_log import MemoryLog
from predrain.data.outlook import Outlook
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.forecasting import worker
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.history_import import Importer
from tests.service.conftest import NOON, SetClock, smart_reading
from tests.service.test_shared_worker import Member, Partitions, put, stored, worker_on

DAY = timedelta(days=1)
PAST = [smart_reading("A", NOON - n * DAY, pending=40 - n) for n in range(40, 2, -1)]
LIVE = [smart_reading("A", NOON - n * DAY, pending=40) for n in (2, 1)]
LAST = smart_reading("A", NOON, pending=40)


def past() -> list[ImportPart]:
    def items(first: int) -> Generator[Item]:
        yield from PAST[first:]

    return [ImportPart("past", "1", items)]


def _forecast(outlook: Outlook) -> Outlook:
    """Without what bears it out: nobody scored the drive in those days."""
    return replace(outlook, readings=0, span_hours=0.0)


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("moved", [False, True], ids=["by the same worker", "by another one"])
def test_a_past_that_was_imported_beside_a_worker_is_in_what_it_tells_next(
    tmp_path: Path, forecaster: BundledForecaster, monkeypatch: pytest.MonkeyPatch, moved: bool, killed: bool
) -> None:
    monkeypatch.setattr(worker, "CHECKPOINT_READINGS", 1)
    alone, expected = MemoryLog(), SqliteStore(tmp_path / "alone.db")
    single = worker_on(alone, expected, forecaster)
    single.rebuild()
    put(alone, [*PAST, *LIVE, LAST])
    single.step()

    parts, store, clock = Partitions(1), SqliteStore(tmp_path / "shared.db"), SetClock()
    log = Member(parts, 0)
    first, second = (worker_on(Member(parts, number), store, forecaster) for number in range(2))
    parts.give({0: 0})
    put(log, LIVE)
    first.step()
    importer = Importer("test", clock, store)
    importer.run(past())
    if killed:  # before it could hand over what it took in
        importer = Importer("test", clock, store)
        importer.run(past())
    assert importer.hand_over(log, RecordSender("import", clock)) == 1
    first.step()
    first.step()
    if moved:
        parts.give({0: 1})
    put(log, [LAST])
    (second if moved else first).step()
    (device,) = stored(store)
    told, wanted = store.outlooks(device, NOON), expected.outlooks(device, NOON)
    assert [_forecast(one) for one in told] == [_forecast(one) for one in wanted]
    assert Importer("test", clock, store).hand_over(log, RecordSender("import", clock)) == 0
    store.close()
    expected.close()
