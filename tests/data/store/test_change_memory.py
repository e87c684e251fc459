"""A process that reads all changes at its start does not hold all documents beside their values."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

from predrain.data.ids import DeviceId
from predrain.data.outlook import SurvivalCurve
from predrain.data.store import documents
from predrain.data.store.sqlite_store import SqliteStore
from tests.data.store.written import OUTLOOKS

DEVICES = 400


def test_documents_are_decoded_as_they_are_read(tmp_path: Path) -> None:
    outlooks = [
        replace(
            OUTLOOKS[0],
            device=DeviceId(f"disk-{number}"),
            survival=SurvivalCurve(1 / (1 + number + day) for day in range(213)),
        )
        for number in range(DEVICES)
    ]
    store = SqliteStore(tmp_path / "store.sqlite")
    store.save_outlooks(outlooks)
    store.read_changes()  # what is made once by the first reader is not counted
    tracemalloc.start()
    try:
        changes = store.read_changes()
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        store.close()
    assert set(changes.outlooks) == set(outlooks)
    stored = sum(len(documents.OUTLOOK.write(one)) for one in outlooks)
    assert peak - now < stored / 4
